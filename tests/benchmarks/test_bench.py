"""Running a table, keeping its figures and writing them on the page."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.papers import run as bench_run
from benchmarks.papers.kept import import_result, path_of, read_result, write_result
from benchmarks.papers.render import SHOWN, best_results, render, shown
from benchmarks.papers.run import Workshop, carry_out, summary
from benchmarks.papers.scales import SMALL, Scoring
from benchmarks.papers.spec import SCALES, Run, Table
from benchmarks.papers.tables import TABLES

from limbeck.errors import BadInput, DataUnreadable
from limbeck.methods.ldpdc import LDPDC
from limbeck.progress import Silent

Cli = Callable[..., Any]
REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results"
PAGE = REPOSITORY / "docs" / "results.md"


def run_named(table: Table, name: str) -> Run:
    return next(run for run in table.runs if run.name == name)


# Running


def test_a_run_says_everything_about_its_figure(tiny: Table, tmp_path: Path) -> None:
    run = run_named(tiny, "ldpdc/digits")
    result = carry_out(tiny, run, "small", Workshop(sets=tmp_path), Silent())
    assert set(result["accuracy"]) == {"linear", "mlp"} and len(result["accuracy"]["mlp"]["runs"]) == 1
    assert result["settings"]["L"] == 10 and 0 < result["epsilon"] == result["accounting"]["epsilon"]
    assert (result["sets"], result["networks"], result["preset"], result["adjacency"]) == (1, 1, "small", "add_remove")
    assert (
        result["commands"][0] == "python -m benchmarks.papers measure --table tiny-1 --rows ldpdc/digits --scale small"
    )
    assert (
        "limbeck condense digits --method ldpdc --set per_class=2 --set L=10 --set sigma=2.0" in result["commands"][1]
    )
    assert {"limbeck", "torch", "python"} <= set(result["versions"])
    json.dumps(result, allow_nan=False)


def test_sets_are_kept_and_shared_unless_they_are_to_be_made_again(
    tiny: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, made = run_named(tiny, "ldpdc/digits"), []
    real = bench_run.condense
    monkeypatch.setattr(bench_run, "condense", lambda *given: made.append(given) or real(*given))
    for again in (False, False, True):
        carry_out(tiny, run, "small", Workshop(sets=tmp_path, again=again), Silent())
    assert len(made) == 2


def test_an_unfinished_set_is_taken_up_again(tiny: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_named(tiny, "ldpdc/digits")

    def stopped(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("limbeck.runs.condense.carry_out", stopped)
        with pytest.raises(KeyboardInterrupt):
            carry_out(tiny, run, "small", Workshop(sets=tmp_path), Silent())
    (folder,) = tmp_path.iterdir()
    assert (folder / "release" / ".run" / "run.json").exists()
    carry_out(tiny, run, "small", Workshop(sets=tmp_path), Silent())
    assert (folder / "release" / "certificate.json").exists()


def test_a_set_is_made_anew_where_a_default_has_changed(
    tiny: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_named(tiny, "ldpdc/digits")
    carry_out(tiny, run, "small", Workshop(sets=tmp_path), Silent())
    assert LDPDC.__init__.__kwdefaults__["clip"] == LDPDC.clip != 0.5
    monkeypatch.setitem(LDPDC.__init__.__kwdefaults__, "clip", 0.5)
    result = carry_out(tiny, run, "small", Workshop(sets=tmp_path), Silent())
    assert result["settings"]["clip"] == 0.5 and len(list(tmp_path.iterdir())) == 2


def test_several_sets_are_averaged(tiny: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_run, "scoring_at", lambda run, scale: Scoring(preset=SMALL, sets=3, networks=2))
    result = carry_out(tiny, run_named(tiny, "real/digits"), "small", Workshop(sets=tmp_path), Silent())
    assert len(result["accuracy"]["linear"]["runs"]) == 6 and result["accuracy"]["linear"]["std"] is not None
    assert result["epsilon"] == "infinity"


def test_the_average_is_left_out_if_a_model_is_missing() -> None:
    scores = {"a": [80.0, 90.0], "b": [60.0]}
    assert summary(scores)["a"] == {"mean": 85.0, "std": 7.0711, "runs": [80.0, 90.0]}
    assert summary(scores)["b"]["std"] is None and "average" not in summary(scores)
    assert summary(scores, ("a", "b"))["average"]["mean"] == 72.5
    assert "average" not in summary(scores, ("a", "b", "c"))


def test_a_set_without_privacy_is_made_under_an_infinite_budget(tmp_path: Path) -> None:
    run = Run(
        name="dm/digits", data="digits", method="dm", models=("linear",), protocol="dpdc", epsilon=float("inf"),
        settings={"per_class": 1},
    )  # fmt: skip
    result = carry_out(TABLES["dpdc-1"], run, "small", Workshop(sets=tmp_path), Silent())
    assert result["epsilon"] == "infinity" and "--epsilon inf" in result["commands"][1]


# Keeping


def test_kept_results_are_read_back_and_never_confused(tiny: Table, tmp_path: Path) -> None:
    run = run_named(tiny, "ldpdc/digits")
    result = {"format": 1, "table": "tiny-1", "run": run.name, "scale": "cpu", "accuracy": {}}
    path = write_result(tmp_path, tiny, run, "cpu", result)
    assert path == path_of(tmp_path, tiny, run, "cpu") and read_result(tmp_path, tiny, run, "cpu") == result
    assert read_result(tmp_path, tiny, run, "full") is None
    shutil.copy(path, path_of(tmp_path, tiny, run, "full"))
    with pytest.raises(DataUnreadable, match="is not the result of"):
        read_result(tmp_path, tiny, run, "full")
    path.write_text("[")
    with pytest.raises(DataUnreadable, match="JSON"):
        read_result(tmp_path, tiny, run, "cpu")


def kept_results() -> list[tuple[Table, Run, str, dict[str, Any]]]:
    return [
        (table, run, scale, result)
        for table in TABLES.values()
        for run in table.runs
        for scale in SCALES
        if (result := read_result(RESULTS / "papers", table, run, scale)) is not None
    ]


def test_every_kept_file_belongs_to_a_run() -> None:
    known = {path_of(RESULTS / "papers", table, run, scale) for table, run, scale, _ in kept_results()}
    assert set((RESULTS / "papers").rglob("*.json")) == known


def test_imported_figures_are_those_of_the_files_they_name() -> None:
    imported = [result for *_, result in kept_results() if "imported_from" in result]
    assert imported
    for result in imported:
        source = json.loads((REPOSITORY / result["imported_from"]).read_text())
        assert all(source["accuracy"][model] == score for model, score in result["accuracy"].items())
        assert all(source[name] == result[name] for name in ("epsilon", "settings", "preset", "accounting"))


def test_a_result_is_imported_only_where_it_fits() -> None:
    second, eighth = TABLES["dpdc-2"], TABLES["dpdc-8"]
    mnist = run_named(second, "ldpdc/mnist")
    result = import_result(second, mnist, "cpu", RESULTS / "ldpdc-mnist-cpu.json")
    assert result["accuracy"]["convnet"]["mean"] == 87.6867 and result["networks"] == 3
    for name, words in {
        "ldpdc-fashion-mnist-cpu": "it was made by",
        "ldpdc-fashion-mnist-L25-set1": "settings L is 25, not 15",
        "preset-agreement-ldpdc-paper": "preset is paper, not cpu",
        "ndpdc_step": "is not the result of a set",
    }.items():
        with pytest.raises((BadInput, DataUnreadable), match=words):
            import_result(second, mnist, "cpu", RESULTS / f"{name}.json")
    with pytest.raises(BadInput, match="not one released set"):
        import_result(eighth, run_named(eighth, "ndpdc-i2000/mnist"), "full", RESULTS / "ndpdc-mnist-paper.json")


def test_a_result_of_another_table_is_imported_only_where_it_fits() -> None:
    ours, papers = TABLES["elixir-1b"], RESULTS / "papers"
    run = run_named(ours, "ndpdc/fashion-mnist")
    result = import_result(ours, run, "cpu", papers / "dpdc-2" / "ndpdc-fashion-mnist.cpu.json")
    assert (result["table"], result["accuracy"]["convnet"]["mean"], result["networks"]) == ("elixir-1b", 78.6133, 3)
    for name, words in {
        "dpdc-2/ndpdc-mnist": "it was made by",  # other data
        "dpdc-8/ndpdc-i2000-fashion-mnist": "settings sigma is 1.0, not None",  # another budget
        "psg-1a/datalens-full-eps1-fashion-mnist": "preset is brief, not cpu",
    }.items():
        with pytest.raises(BadInput, match=words):
            import_result(ours, run, "cpu", papers / f"{name}.cpu.json")


# The page


def test_the_page_of_results_is_what_the_kept_results_say() -> None:
    assert PAGE.read_text() == render(TABLES.values(), RESULTS / "papers", PAGE), (
        "run: python -m benchmarks.papers render"
    )


def test_a_page_with_places_for_tables_keeps_its_own_text(bench: Cli, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- elixir-1b -->\nold\n<!-- end of elixir-1b -->\nafter\n")
    arguments = ("render", "--page", page, "--results", RESULTS / "papers", "--json")
    assert bench(*arguments).json["changed"] is True
    before, *rows, after = page.read_text().splitlines()
    assert (before, after) == ("before", "after")
    assert rows[1] == "| | MNIST | Fashion-MNIST | CIFAR-10 | Adult |" and rows[-2].startswith("| PATE-GAN |")
    assert bench(*arguments, "--check").json["changed"] is False
    page.write_text("<!-- elixir-1b -->\nwithout an end")
    ended = bench(*arguments)
    assert ended.code == 2 and "<!-- end of elixir-1b -->" in ended.err
    assert page.read_text() == "<!-- elixir-1b -->\nwithout an end"


def test_no_figure_of_ours_comes_from_elsewhere() -> None:
    """Read off the page itself, section by section."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) == len(TABLES)
    count = 0
    for section in sections:
        table = TABLES[section.split(":")[0]]
        ours = re.findall(r"\*\*([^*]+)\*\*", section)
        kept = [
            shown(score, table)
            for run in table.runs
            for scale in SHOWN
            if (result := read_result(RESULTS / "papers", table, run, scale)) is not None
            for score in result["accuracy"].values()
        ]
        assert set(ours) <= set(kept)
        cells = sum(cell.run is not None or table.paper[place] is not None for place, cell in table.cells.items())
        said = sum(section.count(f"*{word}*") for word in ("not run", "no method yet", "no data set"))
        assert cells == said + len(ours)
        count += len(ours)
    assert count > 0


def test_cells_show_the_best_scale_and_the_reason_why_there_is_none(tiny: Table, tmp_path: Path) -> None:
    run = run_named(tiny, "ldpdc/digits")
    base = {
        "format": 1, "table": "tiny-1", "run": run.name, "settings": {"L": 10, "seed": 0}, "sets": 1, "networks": 2,
        "preset": "cpu", "epsilon": 1.23456,
    }  # fmt: skip
    for scale, mean in (("small", 11.0), ("cpu", 55.555), ("full", 66.666)):
        accuracy = {"linear": {"mean": mean, "std": 0.5, "runs": []}}
        write_result(tmp_path, tiny, run, scale, {**base, "scale": scale, "accuracy": accuracy})
        page = render([tiny], tmp_path, tmp_path / "page.md")
        if scale == "small":
            assert "11.0" not in page
    assert "| LDPDC | 50.0 ± 1.5 at 1.10<br>**66.67 ± 0.50** at 1.235 (full) | 40<br>*not run* |" in page
    assert "| Real | 90<br>*not run* | -<br>*not run* |" in page
    assert "| Alchemy | 10<br>*no method yet* | 11<br>*no method yet* |" in page
    assert "1 set, 2 networks each, preset `cpu`; L=10; [ldpdc-digits.full.json](tiny-1/ldpdc-digits.full.json)" in page
    assert best_results(tiny, tmp_path)["ldpdc/digits"][0] == "full"


# The command


def test_bench_papers_and_render(bench: Cli, tiny: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("measure", "--table", "tiny-1", "--scale", "small", "--sets", tmp_path / "sets")
    ended = bench(*arguments, "--json")
    assert ended.code == 0, ended.err
    assert {entry["run"]: entry["state"] for entry in ended.json["runs"]} == {
        "ldpdc/digits": "measured",
        "real/digits": "measured",
    }
    assert ended.json["skipped"] == [
        {"table": "tiny-1", "run": "alchemy/digits", "reason": "there is no method 'alchemy' yet"}
    ]
    assert (tmp_path / "limbeck-bench" / "tiny-1" / "ldpdc-digits.small.json").exists()
    shown_lines = bench(*arguments, "--rows", "ldpdc").out
    assert "kept" in shown_lines and "real/digits" not in shown_lines

    listed = bench("measure", "--table", "tiny-1", "--list", "--json").json["runs"]
    assert {entry["run"]: entry["kept"] for entry in listed}["ldpdc/digits"] == ["small"]
    assert "no method yet" in bench("measure", "--list").out

    assert bench("render", "--page", tmp_path / "page.md", "--check").code == 2
    assert bench("render", "--page", tmp_path / "page.md", "--json").json["changed"] is True
    assert bench("render", "--page", tmp_path / "page.md", "--check", "--json").json["changed"] is False


def test_taking_a_figure_from_a_file(bench: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("measure", "--table", "dpdc-2", "--scale", "cpu", "--from", RESULTS / "ldpdc-mnist-cpu.json")
    assert "one run" in bench(*arguments).err
    assert Path(bench(*arguments, "--rows", "ldpdc/mnist", "--json").json["file"]).exists()


def test_a_row_without_its_data_does_not_stop_the_others(
    bench: Cli, tiny: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = bench("measure", "--table", "dpdc-2", "--rows", "ldpdc/cifar10", "--scale", "small")
    assert missing.code == 4 and "cifar10" in missing.err
    both = bench("measure", "--table", "tiny-1,dpdc-2", "--rows", "ldpdc", "--scale", "small", "--json")
    assert both.code == 0 and [entry["run"] for entry in both.json["runs"]] == ["ldpdc/digits"]
    assert {"ldpdc/cifar10", "ldpdc/mnist"} <= {entry["run"] for entry in both.json["skipped"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Name a table"),
        (("--table", "nonsense"), "no table 'nonsense'"),
        (("--table", "dpdc-1", "--scale", "huge"), "scales are"),
        (("--table", "dpdc-1", "--rows", "nonsense"), "No run of dpdc-1"),
        (("--table", "dpdc-1", "--device", "nonsense"), "not available"),
    ],
)
def test_bad_input(bench: Cli, arguments: tuple[str, ...], words: str) -> None:
    ended = bench("measure", *arguments)
    assert ended.code == 2 and words in ended.err


def test_ctrl_c_keeps_what_was_measured(
    bench: Cli, tiny: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def stopped(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_run, "carry_out", stopped)
    ended = bench("measure", "--table", "tiny-1")
    assert ended.code == 130 and "same command" in ended.err


def test_the_owners_scores_are_taken_for_no_table(tmp_path: Path) -> None:
    second = TABLES["dpdc-2"]
    values = json.loads((RESULTS / "ldpdc-mnist-cpu.json").read_text())
    (tmp_path / "owners.json").write_text(json.dumps({**values, "edition": "owner"}))
    with pytest.raises(BadInput, match="marked as the owner's"):
        import_result(second, run_named(second, "ldpdc/mnist"), "cpu", tmp_path / "owners.json")
