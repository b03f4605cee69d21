"""Inception-v3 as the FID measures with it, for those who have its weights. None come with Limbeck.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision". There are two kinds of weights, which have the
same names:

    1008 classes   the TensorFlow weights of 2015, as pytorch-fid has ported them: what published FIDs are measured with.
                   Average pools leave the padding out of their count, and the last block's pool takes the maximum.
    1000 classes   torchvision's ImageNet weights. Average pools count the padding, and the last block averages too.
                   Close to an FID, but not comparable with published ones.

Pictures are stretched to 299 x 299 (bilinear, without antialiasing, as in pytorch-fid) with values in [-1, 1].
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from limbeck.errors import BadInput, DataNotFound
from limbeck.progress import Reporter

SIDE, FEATURES, ROWS_AT_ONCE = 299, 2048, 32
TENSORFLOW, TORCHVISION = "tensorflow-2015", "torchvision"
VARIANTS = {1008: TENSORFLOW, 1000: TORCHVISION}


class Conv(nn.Module):
    """Convolution, batch norm with its stored statistics (so that no record sees another one), ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int | tuple[int, int], stride: int = 1) -> None:
        super().__init__()
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (0, 0) if stride > 1 else (sides[0] // 2, sides[1] // 2)
        self.conv = nn.Conv2d(inputs, outputs, sides, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        bn = self.bn
        normal = F.batch_norm(self.conv(x), bn.running_mean, bn.running_var, bn.weight, bn.bias, False, 0.0, bn.eps)
        return F.relu(normal, inplace=True)


class Unpadded(Conv):
    """A 3x3 convolution of the stem that shrinks its picture by two pixels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3)
        self.conv.padding = (0, 0)


def average(x: Tensor, count_padding: bool) -> Tensor:
    return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=count_padding)


class MixedA(nn.Module):
    """35 x 35 maps."""

    def __init__(self, inputs: int, pooled: int, count_padding: bool) -> None:
        super().__init__()
        self.count_padding = count_padding
        self.branch1x1 = Conv(inputs, 64, 1)
        self.branch5x5_1, self.branch5x5_2 = Conv(inputs, 48, 1), Conv(48, 64, 5)
        self.branch3x3dbl_1, self.branch3x3dbl_2 = Conv(inputs, 64, 1), Conv(64, 96, 3)
        self.branch3x3dbl_3 = Conv(96, 96, 3)
        self.branch_pool = Conv(inputs, pooled, 1)

    def forward(self, x: Tensor) -> Tensor:
        five = self.branch5x5_2(self.branch5x5_1(x))
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return torch.cat([self.branch1x1(x), five, double, self.branch_pool(average(x, self.count_padding))], 1)


class MixedB(nn.Module):
    """From 35 x 35 to 17 x 17."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branch3x3 = Conv(inputs, 384, 3, stride=2)
        self.branch3x3dbl_1, self.branch3x3dbl_2 = Conv(inputs, 64, 1), Conv(64, 96, 3)
        self.branch3x3dbl_3 = Conv(96, 96, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return torch.cat([self.branch3x3(x), double, F.max_pool2d(x, 3, stride=2)], 1)


class MixedC(nn.Module):
    """17 x 17 maps, with long and narrow filters."""

    def __init__(self, inputs: int, middle: int, count_padding: bool) -> None:
        super().__init__()
        self.count_padding = count_padding
        self.branch1x1 = Conv(inputs, 192, 1)
        self.branch7x7_1, self.branch7x7_2 = Conv(inputs, middle, 1), Conv(middle, middle, (1, 7))
        self.branch7x7_3 = Conv(middle, 192, (7, 1))
        self.branch7x7dbl_1, self.branch7x7dbl_2 = Conv(inputs, middle, 1), Conv(middle, middle, (7, 1))
        self.branch7x7dbl_3, self.branch7x7dbl_4 = Conv(middle, middle, (1, 7)), Conv(middle, middle, (7, 1))
        self.branch7x7dbl_5 = Conv(middle, 192, (1, 7))
        self.branch_pool = Conv(inputs, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        seven = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        double = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        double = self.branch7x7dbl_5(self.branch7x7dbl_4(double))
        return torch.cat([self.branch1x1(x), seven, double, self.branch_pool(average(x, self.count_padding))], 1)


class MixedD(nn.Module):
    """From 17 x 17 to 8 x 8."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branch3x3_1, self.branch3x3_2 = Conv(inputs, 192, 1), Conv(192, 320, 3, stride=2)
        self.branch7x7x3_1, self.branch7x7x3_2 = Conv(inputs, 192, 1), Conv(192, 192, (1, 7))
        self.branch7x7x3_3, self.branch7x7x3_4 = Conv(192, 192, (7, 1)), Conv(192, 192, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        seven = self.branch7x7x3_4(self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x))))
        return torch.cat([self.branch3x3_2(self.branch3x3_1(x)), seven, F.max_pool2d(x, 3, stride=2)], 1)


class MixedE(nn.Module):
    """8 x 8 maps."""

    def __init__(self, inputs: int, count_padding: bool, take_maximum: bool) -> None:
        super().__init__()
        self.count_padding, self.take_maximum = count_padding, take_maximum
        self.branch1x1 = Conv(inputs, 320, 1)
        self.branch3x3_1 = Conv(inputs, 384, 1)
        self.branch3x3_2a, self.branch3x3_2b = Conv(384, 384, (1, 3)), Conv(384, 384, (3, 1))
        self.branch3x3dbl_1, self.branch3x3dbl_2 = Conv(inputs, 448, 1), Conv(448, 384, 3)
        self.branch3x3dbl_3a, self.branch3x3dbl_3b = Conv(384, 384, (1, 3)), Conv(384, 384, (3, 1))
        self.branch_pool = Conv(inputs, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        three = self.branch3x3_1(x)
        double = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        pooled = F.max_pool2d(x, 3, stride=1, padding=1) if self.take_maximum else average(x, self.count_padding)
        parts = [self.branch1x1(x), self.branch3x3_2a(three), self.branch3x3_2b(three)]
        parts += [self.branch3x3dbl_3a(double), self.branch3x3dbl_3b(double), self.branch_pool(pooled)]
        return torch.cat(parts, 1)


class InceptionV3(nn.Module):
    """From (records, 3, 299, 299) to (records, 2048) pool features. The names are those of the weight files."""

    def __init__(self, classes: int = 1008) -> None:
        super().__init__()
        tensorflow = VARIANTS[classes] == TENSORFLOW
        count = not tensorflow
        self.Conv2d_1a_3x3 = Conv(3, 32, 3, stride=2)
        self.Conv2d_2a_3x3, self.Conv2d_2b_3x3 = Unpadded(32, 32), Conv(32, 64, 3)
        self.Conv2d_3b_1x1, self.Conv2d_4a_3x3 = Conv(64, 80, 1), Unpadded(80, 192)
        self.Mixed_5b, self.Mixed_5c = MixedA(192, 32, count), MixedA(256, 64, count)
        self.Mixed_5d, self.Mixed_6a = MixedA(288, 64, count), MixedB(288)
        self.Mixed_6b, self.Mixed_6c = MixedC(768, 128, count), MixedC(768, 160, count)
        self.Mixed_6d, self.Mixed_6e = MixedC(768, 160, count), MixedC(768, 192, count)
        self.Mixed_7a, self.Mixed_7b = MixedD(768), MixedE(1280, count, False)
        self.Mixed_7c = MixedE(2048, count, tensorflow)
        self.fc = nn.Linear(FEATURES, classes)  # not used for features; its size tells the two kinds of weights apart

    def forward(self, x: Tensor) -> Tensor:
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(F.max_pool2d(x, 3, stride=2)))
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(F.max_pool2d(x, 3, stride=2))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))))
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        return x.mean((2, 3))


@dataclass(frozen=True, eq=False)
class Inception:
    """The network with somebody's weights, and which ones they are."""

    network: InceptionV3
    variant: str
    sha256: str

    def features(self, x: Tensor, reporter: Reporter) -> Tensor:
        """(records, 2048) of pictures with 1 or 3 channels and values in [-1, 1], beyond which they are clamped."""
        reporter.start("inception features", len(x), 0)
        parts, done = [], 0
        with torch.no_grad():
            for part in torch.split(x, ROWS_AT_ONCE):
                pictures = part.float().clamp(-1, 1).expand(-1, 3, -1, -1)
                stretched = F.interpolate(pictures, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
                parts.append(self.network(stretched))
                done += len(part)
                reporter.advance(done)
        return torch.cat(parts)


def read_inception(path: Path) -> Inception:
    """Read a safetensors file with the names of torchvision or pytorch-fid; anything else is refused in words."""
    weights = _weights(path)
    classes = len(weights["fc.bias"]) if "fc.bias" in weights else 0
    if classes not in VARIANTS:
        raise BadInput(
            f"{path} does not hold Inception-v3: expected fc.bias of 1008 numbers (TensorFlow 2015, as pytorch-fid has it) or "
            f"1000 (torchvision), found {classes or 'none'}."
        )
    with torch.device("meta"):
        network = InceptionV3(classes)
    wanted = {name: value.shape for name, value in network.state_dict().items() if "num_batches" not in name}
    for name, shape in wanted.items():
        if name not in weights or weights[name].shape != shape:
            found = f"shape {tuple(weights[name].shape)}" if name in weights else "none"
            raise BadInput(
                f"{path} does not hold Inception-v3: expected {name} of shape {tuple(shape)}, found {found}."
            )
    network.load_state_dict({name: weights[name].float() for name in wanted}, strict=False, assign=True)
    return Inception(network.eval(), VARIANTS[classes], hashlib.sha256(path.read_bytes()).hexdigest())


def _weights(path: Path) -> dict[str, Tensor]:
    try:
        if not path.is_file():
            raise DataNotFound(f"There is no file {path} with Inception weights.")
        return load_file(path)
    except (SafetensorError, OSError) as error:
        if zipfile.is_zipfile(path) or path.suffix.lower() in (".pth", ".pt"):
            # Reading it here would mean to unpickle a file of unknown origin.
            raise BadInput(
                f"{path} is a pickled PyTorch file, which Limbeck does not open; write it as safetensors first.",
                'python -c "import sys, torch, safetensors.torch as s; '
                's.save_file({k: v.contiguous() for k, v in torch.load(sys.argv[1], weights_only=True).items()}, sys.argv[2])" '
                f"{path} {path.with_suffix('.safetensors')}",
            ) from None
        raise BadInput(f"{path} cannot be read as safetensors: {error}.") from None
