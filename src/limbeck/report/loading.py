"""How to load a release, as code that runs as it stands from inside the release folder. Card and page show the same."""

from __future__ import annotations

from dataclasses import dataclass

from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Schema

DATA_FILE = "data/train.parquet"


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """`library` is what has to be installed to run the code."""

    title: str
    library: str
    code: str


def set_snippets(schema: Schema, made_at: tuple[int, int] | None = None) -> list[Snippet]:
    """For a synthetic set. Every snippet stands alone, so that it can be copied alone. made_at: see `size_sentence`."""
    shape = ", ".join(str(side) for side in schema.shape)
    numpy = (
        "import numpy as np\n\n"
        'file = np.load("set.npz")\n'
        f"# float32 of shape (records, {shape}) in the range [-1, 1], and class indices\n"
        'x, y = file["x"], file["y"]\n'
    )
    pandas = Snippet(
        title="pandas", library="pandas", code=f'import pandas as pd\n\ntable = pd.read_parquet("{DATA_FILE}")'
    )
    if not schema.has_label:
        return [pandas, Snippet(title="Hugging Face datasets", library="datasets", code=_ROWS)]
    return [
        Snippet(
            title="PyTorch",
            library="torch",
            code=_torch(numpy, made_at),
        ),
        Snippet(
            title="scikit-learn",
            library="sklearn",
            code=numpy.replace("import numpy as np\n", _SKLEARN_IMPORTS)
            + "model = LogisticRegression(max_iter=1000).fit(x.reshape(len(x), -1), y)",
        ),
        Snippet(title="Hugging Face datasets", library="datasets", code=_datasets(schema)),
        pandas,
    ]


def _torch(numpy: str, made_at: tuple[int, int] | None) -> str:
    imports, pictures, down = _TORCH_IMPORTS, "torch.from_numpy(x)", ""
    if made_at is not None:
        imports = imports.replace(
            "from torch.utils", "from torch.nn.functional import adaptive_avg_pool2d\nfrom torch.utils"
        )
        down = (
            f"# made at {made_at[0]} x {made_at[1]} and enlarged: the same for every picture that the model is to see later\n"
            f"small = adaptive_avg_pool2d(torch.from_numpy(x), {made_at})\n"
        )
        pictures = "small"
    return (
        numpy.replace("import numpy as np\n", imports)
        + down
        + f"train = TensorDataset({pictures}, torch.from_numpy(y))\n"
        + "loader = DataLoader(train, batch_size=64, shuffle=True)"
    )


_TORCH_IMPORTS = "import numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
_SKLEARN_IMPORTS = "import numpy as np\nfrom sklearn.linear_model import LogisticRegression\n"
_ROWS = f'from datasets import load_dataset\n\ntrain = load_dataset("parquet", data_files="{DATA_FILE}", split="train")'


def _datasets(schema: Schema) -> str:
    what = "8-bit pictures with class labels" if schema.is_image else "decoded columns with class names"
    return (
        "import numpy as np\n"
        "from datasets import Dataset, load_dataset\n\n"
        f"# {what}\n"
        f'train = load_dataset("parquet", data_files="{DATA_FILE}", split="train")\n\n'
        "# or the exact numbers\n"
        'file = np.load("set.npz")\n'
        'exact = Dataset.from_dict({"x": file["x"].tolist(), "y": file["y"].tolist()})'
    )


def model_snippets(schema: Schema) -> list[Snippet]:
    """For a trained model."""
    shape = ", ".join(str(side) for side in schema.shape)
    return [
        Snippet(
            title="PyTorch",
            library="torch",
            code="import torch\n\n"
            "import limbeck\n\n"
            'model = limbeck.load_model(".")  # a PyTorch module, in evaluation mode\n'
            f"x = torch.zeros(1, {shape})  # your records, scaled to [-1, 1]\n"
            "logits = model(x)  # one logit per class",
        )
    ]


def generator_snippet() -> Snippet:
    """For the generator beside a set."""
    return Snippet(
        title="More records",
        library="torch",
        code="import limbeck\n\n"
        'generator = limbeck.load_generator(".")\n'
        "x, y = generator.sample(1000, seed=1)  # free: the budget is not touched",
    )


# What a generator did whose pictures are not the set, by its kind.
BESIDE = {
    "upsampling": "A generator that was matched to the answers that the set is made of",
    "smooth_dcgan": "A generator that was matched to the answers that the set is made of",
    "gaussian": "The Gaussian model of each class that the set is samples of",
}


def generator_sentence(spec: GeneratorSpec | TableSpec | GraphSpec) -> str:
    """What the generator is, and what can be expected of records that are not in the set."""
    if isinstance(spec, TableSpec | GraphSpec):
        return (
            "The model that the rows were drawn from is in generator.safetensors, described by generator.json. It was made from "
            "paid answers alone, so drawing more rows from it costs nothing, and they are as good as those of the set. Rows that "
            "keep to a condition can be drawn, too; the fewer there are by the model, the less is known about them."
        )
    which = BESIDE.get(spec.kind, "The generator that made the set")
    text = (
        f"{which} is in generator.safetensors, described by generator.json. It was made from paid answers alone, so drawing more "
        "records from it costs nothing."
    )
    if spec.fitted:
        text += (
            f" It was trained on {spec.fitted} fixed latents per class, those of the set; for other latents it was never "
            "trained, so further records lie between those of the set and may be worse."
        )
    return text


def scaling_sentence(schema: Schema) -> str:
    """What own records need before a model of the set can take them."""
    if schema.columns:
        return (
            "Own records take the same form first: numbers scaled from their public range to [-1, 1], one number per "
            "category, as config.json describes each column."
        )
    low, span = schema.low, schema.high - schema.low
    shifted = "raw" if low == 0 else f"(raw - {low:g})" if low > 0 else f"(raw + {-low:g})"
    formula = f"x = {shifted} / {span:g} * 2 - 1".replace(" ", "\u00a0")  # in one line
    return f"Own records take the same scale first: {formula}."


def size_sentence(made_at: tuple[int, int] | None) -> str:
    """How to train on pictures that were made smaller than they are released. made_at: height and width; None: they were not.

    >>> size_sentence(None), size_sentence((32, 24)).split(":")[0]
    ('', 'Train at 32 x 24')
    """
    if made_at is None:
        return ""
    size = f"{made_at[0]} x {made_at[1]}"
    return (
        f"Train at {size}: average down, the pictures of this set and your own alike. They were made at {size} and enlarged, "
        "so they hold no finer detail, and a network that sees them at their full size learns less. limbeck evaluate does so."
    )


def parquet_sentence(schema: Schema) -> str:
    if schema.is_image:
        return (
            "The Parquet file holds the records as 8-bit pictures, for looking at and for general tools. set.npz holds the "
            "exact numbers, and accuracy figures are measured with these."
        )
    if not schema.has_label:
        return (
            "The Parquet file holds decoded columns. set.npz holds the encoded numbers as x; there is no label, so its y is 0 "
            "for every row."
        )
    measured = "figures are measured on decoded rows" if schema.columns else "accuracy figures are measured with these"
    return (
        f"The Parquet file holds decoded columns with the class name under '{schema.label}'. set.npz holds the encoded "
        f"numbers; {measured}."
    )
