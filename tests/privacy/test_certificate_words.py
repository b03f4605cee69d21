"""What a certificate says of itself follows from its queries, even if its owner signs something else."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from test_certificate import original, owner, stated, write
from tiny import DELTA, MemorySource, plan_of, release_of

from limbeck.errors import NotAuthentic, NotReleasable
from limbeck.methods import SyntheticSet
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import ClippedSum, query_from_dict
from limbeck.release.certificate import certify
from limbeck.release.signature import KeyFile
from limbeck.release.verification import file_hash, require_releasable, verify
from limbeck.release.writer import ReleaseWriter
from limbeck.vault.noise import Randomness

__all__ = ["original", "owner"]  # fixtures
OWNERS_PAGE = b'<html><meta name="limbeck-edition" content="owner">'


@pytest.fixture
def release(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "release")
    return tmp_path / "release"


def resign(release: Path, key: Ed25519PrivateKey, change: Callable[[dict[str, Any]], Any]) -> None:
    values = stated(release)
    change(values)
    write(release, values, key)


def test_the_word_private_is_for_a_finite_epsilon_only(release: Path, owner: Ed25519PrivateKey) -> None:
    """Queries without noise, and an epsilon of infinity that says so twice: intact only if it is not called private."""

    def bare(values: dict[str, Any], private: bool) -> None:
        for query in values["queries"]:
            query["noise_multiplier"] = 0.0
            query.pop("step", None)
        values.pop("sampler_delta", None)
        values["accounting"] = price([query_from_dict(query) for query in values["queries"]], DELTA).to_dict()
        values.update(epsilon="infinity", private=private, releasable=private)

    resign(release, owner, lambda values: bare(values, True))
    with pytest.raises(NotAuthentic, match="'private' does not fit"):
        verify(release)
    resign(release, owner, lambda values: bare(values, False))
    with pytest.raises(NotReleasable, match="NOT PRIVATE"):
        require_releasable(verify(release))


@pytest.mark.parametrize("stated_delta", [0.0, 1e-300, 1e-3, -1e-9])
def test_the_sampler_is_stated_as_the_queries_make_it(
    stated_delta: float, release: Path, owner: Ed25519PrivateKey
) -> None:
    assert 0 < verify(release).sampler_delta < 1e-250
    resign(release, owner, lambda values: values.update(sampler_delta=stated_delta))
    with pytest.raises(NotAuthentic, match="sampler_delta"):
        verify(release)


@pytest.mark.parametrize("factor", [0.25, 4.0, 1.5, 0.0])
def test_a_step_that_does_not_follow_from_clip_and_noise_is_found(
    factor: float, release: Path, owner: Ed25519PrivateKey
) -> None:
    def coarser(values: dict[str, Any]) -> None:
        values["queries"][0]["step"] *= factor

    resign(release, owner, coarser)
    with pytest.raises(NotAuthentic, match="step="):
        verify(release)


def test_noise_of_doubles_cannot_pass_for_whole_steps(release: Path, owner: Ed25519PrivateKey) -> None:
    """A query without a step is one of an older version, and then there is no sampler whose error could be stated."""

    def older(values: dict[str, Any]) -> None:
        for query in values["queries"]:
            del query["step"]

    resign(release, owner, older)
    with pytest.raises(NotAuthentic, match="sampler_delta"):
        verify(release)
    resign(release, owner, lambda values: values.pop("sampler_delta"))
    assert verify(release).sampler_delta == 0


def test_a_delta_above_one_in_n_is_found_although_epsilon_follows_from_it(
    release: Path, owner: Ed25519PrivateKey
) -> None:
    def loosened(values: dict[str, Any]) -> None:
        cost = price([query_from_dict(query) for query in values["queries"]], 0.01)
        values.update(epsilon=cost.epsilon, delta=0.01, accounting=cost.to_dict())

    resign(release, owner, loosened)
    with pytest.raises(NotAuthentic, match="whole records"):
        verify(release)


@pytest.mark.parametrize("share", [0.9998, 0.999, 0.99])
def test_an_epsilon_that_is_a_little_lower_is_found(share: float, release: Path, owner: Ed25519PrivateKey) -> None:
    """Versions of an accountant may differ by one part in ten thousand, and no more."""

    def lowered(values: dict[str, Any]) -> None:
        values["epsilon"] = values["accounting"]["epsilon"] = values["epsilon"] * share

    resign(release, owner, lowered)
    with pytest.raises(NotAuthentic, match="its queries cost"):
        verify(release)


def test_one_answer_more_than_was_paid_for_is_found(release: Path, owner: Ed25519PrivateKey) -> None:
    def drawn(values: dict[str, Any], more: int) -> None:
        query = values["queries"][0]
        values["drawn"] = {query["label"]: query["count"] + more}

    resign(release, owner, lambda values: drawn(values, 0))
    verify(release)
    resign(release, owner, lambda values: drawn(values, 1))
    with pytest.raises(NotAuthentic, match="More answers"):
        verify(release)


@pytest.mark.parametrize("name", ["report.html", "harmless.txt"])
def test_an_owners_copy_is_found_even_if_the_owner_signs_it(name: str, release: Path, owner: Ed25519PrivateKey) -> None:
    (release / name).write_bytes(OWNERS_PAGE)
    resign(release, owner, lambda values: values["files"].update({name: file_hash(release / name)}))
    with pytest.raises(NotReleasable, match="owner's copy"):
        verify(release)


@pytest.mark.parametrize("stated_epsilon", [0.1, 99.0])
def test_a_certificate_prices_the_queries_itself(
    stated_epsilon: float, source: MemorySource, query: ClippedSum
) -> None:
    plan = plan_of(query)
    wrong = dataclasses.replace(plan, price=dataclasses.replace(plan.price, epsilon=stated_epsilon))
    found = certify(plan=wrong, schema=source.schema, drawn={}, randomness=Randomness(), records=6, files={})
    assert found.epsilon == found.accounting.epsilon == plan.price.epsilon != stated_epsilon


def test_a_set_that_calls_itself_a_model_is_found(release: Path, owner: Ed25519PrivateKey) -> None:
    """Its records counted as none, so that only its files tell."""
    resign(release, owner, lambda values: values.update(content="model", records=0))
    with pytest.raises(NotAuthentic, match="says that the release is a model"):
        verify(release)
    resign(release, owner, lambda values: values.update(content="set", records=0))
    with pytest.raises(NotAuthentic, match="says that the release is a set"):
        verify(release)
    resign(release, owner, lambda values: values.update(content="table", records=20))
    with pytest.raises(NotAuthentic, match="does not know"):
        verify(release)


def test_what_was_drawn_is_stated(source: MemorySource, tmp_path: Path) -> None:
    """And counted by the ledger, not by the plan."""
    values = stated(release_of(source, tmp_path))
    assert values["drawn"] == {query["label"]: query["count"] for query in values["queries"]}
    assert all(values["drawn"].values())


def test_a_release_is_not_written_with_an_owners_copy_in_it(
    source: MemorySource, query: ClippedSum, tmp_path: Path
) -> None:
    """Whatever writes it: the page is looked at before it is signed."""
    writer = ReleaseWriter(
        plan=plan_of(query),
        schema=source.schema,
        randomness=Randomness(),
        signer=KeyFile(tmp_path / "key"),
        drawn=dict,
        pages=lambda *_: {"report.html": OWNERS_PAGE},
    )
    result = SyntheticSet(x=source.records.x[:3], y=source.records.y[[0, 50, 100]])
    (tmp_path / "out").mkdir()
    with pytest.raises(NotReleasable, match=r"report\.html is marked"):
        writer.write(tmp_path / "out", result)
    assert not (tmp_path / "out" / "certificate.json").exists()
