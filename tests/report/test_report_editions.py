"""`limbeck report`: nothing that was not paid for in the release edition, and a stamp on the owner's."""

from __future__ import annotations

import dataclasses
import json
import re
import stat
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from limbeck.data import open_source
from limbeck.data.benchmark import Benchmark
from limbeck.errors import BadInput, LedgerFault, NotReleasable
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.fidelity_result import Fidelity
from limbeck.evaluate.privacy_curve import PrivacyCurve
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.editions import page_edition
from limbeck.report.gather import Sources, gather
from limbeck.report.page import Report, page_style, render, style_hash
from limbeck.report.strips import class_strips
from limbeck.vault.ledger import Ledger
from releases import copied, digits_release

Cli = Callable[..., Any]
STAMP = "Owner's copy: do not share"
REAL = re.compile(r'alt="\d+ (nearest )?real pictures')


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits_release(tmp_path_factory.mktemp("made"))


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path / "runs" / "digits")


@pytest.fixture
def evaluation(release: Path, tmp_path: Path) -> Path:
    stated = json.loads((release / "certificate.json").read_text())
    values = {
        "release": str(release), "test": "digits:test", "preset": "cpu", "labels": "hard", "repeats": 1,
        "accuracy": {"mlp": {"mean": 61.25, "std": 0.5, "runs": [61.25]}},
        "benchmarks": {"test": Benchmark("digits", "test").to_dict(), "real": Benchmark("digits", "train").to_dict()},
        "ceiling": {"accuracy": {"mlp": {"mean": 97.75}}}, "control": {"accuracy": {"mlp": {"mean": 9.5}}},
    } | {name: stated[name] for name in ("method", "epsilon", "records")}  # fmt: skip
    return written(tmp_path / "evaluation.json", values)


def written(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(json.dumps(values))
    return path


def changed(path: Path, **values: Any) -> Path:
    return written(path.with_name("changed.json"), {**json.loads(path.read_text()), **values})


class Rules(HTMLParser):
    """What every page keeps to: headings in order, pictures with words, nothing inline that its policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.level, self.pictures, self.tables = 0, 0, 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert "style" not in found and not any(name.startswith("on") for name in found), (tag, found)
        assert tag not in ("script", "link", "iframe", "form", "object")
        if re.fullmatch(r"h[1-6]", tag):
            assert int(tag[1]) <= self.level + 1, f"{tag} after h{self.level}"
            self.level = int(tag[1])
        if tag == "img":
            assert found.get("alt") and (found.get("src") or "").startswith("data:image/png;base64,")
            self.pictures += 1
        if tag == "th":
            assert "scope" in found or "aria-hidden" in found


def keeps_the_rules(page: str) -> str:
    rules = Rules()
    rules.feed(page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy and style and "default-src 'none'" in policy[1]
    assert f"style-src '{style_hash(style[1])}'" in policy[1] and "unsafe" not in policy[1]
    return page


def test_the_release_edition_says_what_it_is(cli: Cli, release: Path, evaluation: Path, tmp_path: Path) -> None:
    ended = cli("report", release, "--evaluation", evaluation, "--json")
    out = release.with_name("digits-report.html")
    assert ended.code == 0 and ended.json["report"] == str(out) and ended.json["edition"] == "release"
    page = keeps_the_rules(out.read_text())
    assert page_edition(page.encode()) == "release" and STAMP not in page
    for words in ("61.25 %", "97.75", "9.50", "How to load it", "scikit-learn", "Hugging Face datasets", "Questions"):
        assert words in page, words
    assert "All bookings" not in page and not REAL.search(page)
    assert page.count('alt="2 synthetic pictures of class') == 10
    assert str(tmp_path) not in page  # no path of the owner's machine
    assert cli("verify", release).code == 0  # nothing was put into it
    assert cli("report", release, "--evaluation", evaluation).code == 0  # a report may replace a report


def test_the_release_itself_holds_such_a_page(release: Path) -> None:
    page = keeps_the_rules((release / "report.html").read_text())
    assert page_edition(page.encode()) == "release" and "How well it trains" not in page


def test_the_owners_edition_shows_real_pictures_and_is_stamped(
    cli: Cli, release: Path, made: Path, evaluation: Path, tmp_path: Path
) -> None:
    fidelity = written(tmp_path / "f.json", {"edition": "owner", "set": {"inception_score": {"mean": 7.5}}})
    private = changed(evaluation, edition="owner", test="/home/me/held-out.csv")
    arguments = ("--data", "digits", "--ledger", made.parent / "ledger.sqlite", "--fidelity", fidelity)
    ended = cli("report", release, "--edition", "owner", "--evaluation", private, *arguments)
    assert ended.code == 0 and "DO NOT SHARE" in ended.out
    out = release.with_name("digits-owner-report.html")
    page = keeps_the_rules(out.read_text())
    assert (
        page_edition(page.encode()) == "owner" and page.count(STAMP) == 3
    )  # on the screen and, in two ways, on every printed page
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert len(REAL.findall(page)) == 20 and "All bookings" in page and "this release</span>" in page
    assert "Closeness to the real records" in page and "/home/me/held-out.csv" in page and "97.75" in page


def test_the_owners_edition_works_without_data_and_ledger(cli: Cli, release: Path, tmp_path: Path) -> None:
    ended = cli("report", release, "--edition", "owner", "--out", tmp_path / "o.html", "--json")
    assert ended.code == 0 and ended.json["edition"] == "owner"
    page = keeps_the_rules((tmp_path / "o.html").read_text())
    assert STAMP in page and not REAL.search(page) and "All bookings" not in page


@pytest.mark.parametrize(
    "change", [{"edition": "owner"}, {"test": "/home/me/held-out.csv", "benchmarks": {}}, {"benchmarks": {}}]
)
def test_scores_on_private_records_are_refused_in_a_release(
    cli: Cli, release: Path, evaluation: Path, change: dict[str, Any]
) -> None:
    ended = cli("report", release, "--evaluation", changed(evaluation, **change), "--json")
    assert ended.code == 7 and "owner" in ended.json["error"]["message"]
    assert not release.with_name("digits-report.html").exists()


def test_real_records_are_refused_in_a_release(cli: Cli, release: Path, tmp_path: Path) -> None:
    assert cli("report", release, "--data", "digits").code == 7
    assert cli("report", release, "--fidelity", written(tmp_path / "f.json", {"edition": "owner"})).code == 7
    with pytest.raises(NotReleasable):
        Sources(run=release, real=open_source("digits"))


def test_no_report_of_the_release_edition_can_be_made_with_the_owners_things(
    certificate: Certificate, gray: Schema
) -> None:
    import numpy as np

    strips = class_strips(np.zeros((2, 1, 8, 8)), np.array([0, 1]), gray)
    for owners in (
        {"real": strips}, {"nearest": strips}, {"real_grid": b"png"}, {"fidelity": Fidelity.from_dict({"a": 1})},
        {"evaluations": [Evaluation.from_dict({"edition": "owner"})]},
        {"curve": PrivacyCurve.from_dict({"edition": "owner"})},
    ):  # fmt: skip
        with pytest.raises(NotReleasable):
            Report(certificate=certificate, schema=gray, **owners)  # type: ignore[arg-type]
        Report(certificate=certificate, schema=gray, edition="owner", **owners)  # type: ignore[arg-type]


def test_what_real_records_reach_is_left_out_where_they_are_private(release: Path, evaluation: Path) -> None:
    public = changed(evaluation, edition="release", benchmarks={})
    assert "97.75" not in render(gather(Sources(run=release, evaluations=[public])))


def test_the_history_of_the_data_set_is_shown_on_request(cli: Cli, release: Path, made: Path) -> None:
    ledger = made.parent / "ledger.sqlite"
    page = render(gather(Sources(run=release, history=True, ledger=ledger)))
    assert "All bookings" in page and "this release</span>" in page and page_edition(page.encode()) == "release"
    assert gather(Sources(run=release, ledger=ledger)).budget is None
    with pytest.raises(LedgerFault, match="There is no ledger"):
        gather(Sources(run=release, history=True, ledger=ledger.with_name("other")))
    with Ledger.open() as book:  # the owner's own ledger, which knows another data set only
        book.set_budget("people", 1.0, 1e-5)
    assert gather(Sources(run=release, history=True)).budget is None
    with pytest.raises(LedgerFault, match="knows no data set 'digits'"):
        gather(Sources(run=release, edition="owner", ledger=book.path))


def test_a_curve_is_drawn_and_may_be_the_owners(cli: Cli, release: Path, tmp_path: Path) -> None:
    points = [{"epsilon": 0.5, "accuracy": 40.0}, {"epsilon": 1.0, "accuracy": 60.0, "std": 2.0}]
    public = written(tmp_path / "c.json", {"points": points, "edition": "release", "title": "Title of the curve"})
    assert cli("report", release, "--curve", public).code == 0
    page = keeps_the_rules(release.with_name("digits-report.html").read_text())
    assert "Convergence" in page and "Title of the curve" in page and "<polyline" in page
    proved = {"points": points, "benchmarks": {"test": Benchmark("digits", "test").to_dict()}}
    assert cli("report", release, "--curve", written(tmp_path / "proved.json", proved)).code == 0
    unproved = written(tmp_path / "u.json", {"points": points, "test": "digits:test"})
    assert cli("report", release, "--curve", unproved).code == 7
    private = written(tmp_path / "p.json", {"points": points, "edition": "owner"})
    assert cli("report", release, "--curve", private).code == 7
    assert cli("report", release, "--curve", private, "--edition", "owner").code == 0
    assert cli("report", release, "--curve", written(tmp_path / "n.json", {"points": []})).code == 2
    assert cli("report", release, "--curve", tmp_path / "missing.json").code == 4


def test_no_report_goes_into_a_release(cli: Cli, release: Path) -> None:
    for out in (release / "owner.html", release / "data" / "deep.html", release / "report.html"):
        for edition in ("owner", "release"):
            ended = cli("report", release, "--edition", edition, "--out", out, "--json")
            assert ended.code == 7 and "lies inside the release" in ended.json["error"]["message"]
    assert cli("verify", release).code == 0


def test_what_lies_in_the_way_is_not_overwritten(cli: Cli, release: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.html").write_text("<p>years of work")
    assert cli("report", release, "--out", tmp_path / "thesis.html").code == 8
    assert (tmp_path / "thesis.html").read_text() == "<p>years of work"
    (tmp_path / "link.html").symlink_to(tmp_path / "elsewhere.html")
    assert cli("report", release, "--out", tmp_path / "link.html").code == 8
    assert cli("report", release, "--out", tmp_path).code == 8
    assert cli("report", release, "--out", tmp_path / "nowhere" / "r.html").code == 9


def test_bad_input_is_one_sentence(cli: Cli, release: Path, evaluation: Path, tmp_path: Path) -> None:
    assert cli("report", tmp_path / "nothing").code == 6
    assert cli("report", release, "--edition", "both").code == 2
    assert cli("report", release, "--evaluation", tmp_path / "missing.json").code == 4
    assert cli("report", release, "--evaluation", changed(evaluation, epsilon=0.001)).code == 2
    assert cli("report", release, "--edition", "owner", "--data", "nonsense").code == 4
    unfinished = copied(release, tmp_path / "unfinished")
    (unfinished / ".run").mkdir()
    (unfinished / ".run" / "run.json").write_text("{}")
    ended = cli("report", unfinished, "--json")
    assert ended.code == 8 and "limbeck resume" in ended.json["error"]["next_command"]
    (release / "set.npz").write_bytes(b"")
    assert cli("report", release).code == 6


def test_real_records_of_another_form_are_refused(release: Path, tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "own.npz", x=np.zeros((4, 3)), y=np.arange(4) % 2)
    (tmp_path / "own.npz.limbeck.toml").write_text('name="own"\nshape=[3]\nclasses=["a","b"]\nrecords=4\n')
    with pytest.raises(BadInput, match="must be the same"):
        gather(Sources(run=release, edition="owner", real=open_source(str(tmp_path / "own.npz"))))


def test_the_owners_edition_of_a_table_lays_real_rows_beside_the_synthetic_ones(cli: Cli, tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "own.npz", x=np.random.default_rng(0).uniform(0, 1, (200, 3)), y=np.arange(200) % 2)
    (tmp_path / "own.npz.limbeck.toml").write_text(
        'name="own"\nshape=[3]\nclasses=["a","b"]\nrecords=200\nlow=0\nhigh=1\naugmentation=[]\n'
    )
    small = ("--method", "ldpdc", "--per-class", 2, "--set", "L=10", "--set", "sigma=2")
    assert cli("condense", tmp_path / "own.npz", *small, "--out", tmp_path / "run").code == 0
    out = tmp_path / "o.html"
    assert cli("report", tmp_path / "run", "--edition", "owner", "--data", tmp_path / "own.npz", "--out", out).code == 0
    page = keeps_the_rules(out.read_text())
    assert 'alt="Real rows, class by class"' in page and 'alt="Synthetic rows' in page and "All bookings" in page


def test_a_page_about_a_model_has_no_pictures_and_says_how_to_load_it(certificate: Certificate, gray: Schema) -> None:
    page = keeps_the_rules(
        render(Report(certificate=dataclasses.replace(certificate, content="model", records=0), schema=gray))
    )
    assert "limbeck.load_model" in page and "model.safetensors" in page and "The set" not in page
    assert "set.npz" not in page and "scikit-learn" not in page and "Synthetic records" not in page


def test_style_sheets_load_nothing() -> None:
    style = page_style("look.css", "report.css", "owner.css")
    assert "url(" not in style and "@import" not in style and "</style" not in style
