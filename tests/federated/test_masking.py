"""Masks: they cancel in the sum, a sum without all sites is noise, and the server cannot come in between."""

from __future__ import annotations

import dataclasses
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from scipy import stats

from limbeck.errors import BadInput, WallBreach
from limbeck.privacy.federation import Terms
from limbeck.vault.masking import MaskKey, MaskKeys, _signed_bytes, check_keys, context_of, stream, unmasked
from limbeck.vault.private_folder import folder_of

GRANT = "a" * 32


def federation(folder: Path, sites: int = 3, **changes: object) -> list[MaskKeys]:
    owners = [Ed25519PrivateKey.generate() for _ in range(sites)]
    public = tuple(owner.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex() for owner in owners)
    terms = Terms(
        name="f",
        sites=tuple(f"s{i}" for i in range(sites)),
        keys=public,
        noise="shared",
        **changes,  # type: ignore[arg-type]
    )
    return [
        MaskKeys(terms, f"s{i}", folder / f"{i}" / "ledger.sqlite", owner)
        for i, owner in enumerate(owners)
        if (folder / f"{i}").mkdir(exist_ok=True) is None
    ]


def offered(sites: list[MaskKeys], grant: str = GRANT) -> list[MaskKey]:
    return [site.offer(grant) for site in sites]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_masks_cancel_exactly(tmp_path: Path, count: int) -> None:
    sites = federation(tmp_path, count)
    keys, context = offered(sites), context_of("answer", 0)
    numbers = np.random.default_rng(0).integers(-(2**62), 2**62, (count, 50))
    masked = [numbers[i].view(np.uint64) + site.mask(GRANT, keys, context, 50) for i, site in enumerate(sites)]
    np.testing.assert_array_equal(unmasked(sites[0].terms, masked), numbers.sum(0))
    for part, number in zip(masked, numbers, strict=True):
        assert (part.view(np.int64) != number).all()


def test_what_the_server_sees_of_one_sum_is_uniform(tmp_path: Path) -> None:
    """Under many keys, the bits of a masked zero and of a masked large number: each byte of a word takes all values alike.

    So do the words of all sites but one together: only the sum over all of them says anything.
    """
    seen = []
    for trial in range(40):
        folder = tmp_path / f"{trial}"
        folder.mkdir()
        sites = federation(folder)
        keys = offered(sites)
        words = [site.mask(GRANT, keys, context_of("answer", 0), 64) for site in sites]
        seen.append([words[0], words[0] + words[1], words[1] + np.uint64(2**63 + 12345)])
    for view in np.array(seen).transpose(1, 0, 2):
        counts = np.bincount(view.ravel().view(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-9
        places = view.ravel().view(np.uint8).reshape(-1, 8)
        assert all(stats.chisquare(np.bincount(column // 16, minlength=16)).pvalue > 1e-9 for column in places.T)


def test_without_one_site_the_sum_stays_masked(tmp_path: Path) -> None:
    sites = federation(tmp_path)
    keys = offered(sites)
    parts = [site.mask(GRANT, keys, context_of(0), 1000) for site in sites]
    with pytest.raises(WallBreach, match="missing"):
        unmasked(sites[0].terms, parts[:2])
    left = (parts[0] + parts[1]).view(np.uint8)
    assert stats.chisquare(np.bincount(left, minlength=256)).pvalue > 1e-9


def test_another_context_is_another_mask(tmp_path: Path) -> None:
    """Sites that are told different things get noise: the masks of different answers, maps or plans have nothing in common."""
    sites = federation(tmp_path, 2)
    keys = offered(sites)
    first = sites[0].mask(GRANT, keys, context_of("sums", 0, "map"), 100)
    for other in (context_of("sums", 1, "map"), context_of("sums", 0, "other"), context_of("sum", 0, "map")):
        total = unmasked(sites[0].terms, [first, sites[1].mask(GRANT, keys, other, 100)])
        assert np.abs(total).min() > 2**40
    assert (sites[0].mask(GRANT, keys, context_of("sums", 0, "map"), 100) == first).all()


def test_streams_are_of_their_key_and_context() -> None:
    assert (stream(b"1" * 32, b"a", 8) == stream(b"1" * 32, b"a", 8)).all()
    assert (stream(b"1" * 32, b"a", 8) != stream(b"1" * 32, b"b", 8)).all()
    assert (stream(b"1" * 32, b"a", 8) != stream(b"2" * 32, b"a", 8)).all()
    assert (stream(b"1" * 32, b"a", 20)[:8] == stream(b"1" * 32, b"a", 8)).all()


def test_the_server_cannot_come_in_between(tmp_path: Path) -> None:
    """It carries the keys, so it may try: a key of its own, one of another run, one of another site, too few, too many."""
    sites = federation(tmp_path)
    keys = offered(sites)
    mine = X25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    stranger = Ed25519PrivateKey.generate()
    forged = MaskKey("s1", mine, stranger.sign(b"whatever").hex())
    tries = [
        [keys[0], dataclasses.replace(keys[1], public_key=mine), keys[2]],
        [keys[0], forged, keys[2]],
        [keys[0], sites[1].offer("b" * 32), keys[2]],
        [keys[0], dataclasses.replace(keys[2], site="s1"), keys[2]],
        [keys[0], keys[1]],
        [keys[0], keys[2], keys[1]],
        [*keys, keys[2]],
        [keys[0], dataclasses.replace(keys[1], signature="zz"), keys[2]],
        [],
    ]
    for wrong in tries:
        with pytest.raises(WallBreach):
            sites[0].mask(GRANT, wrong, context_of(0), 1)
    own = MaskKeys(sites[0].terms, "s0", tmp_path / "elsewhere" / "ledger.sqlite", sites[0]._owner)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(
        WallBreach, match="another one for this site"
    ):  # signed once, by a copy of the site that lost its key
        sites[0].mask(GRANT, [own.offer(GRANT), *keys[1:]], context_of(0), 1)


FIELD = 2**255 - 19


def with_its_top_bit(key: bytes) -> bytes:
    """X25519 does not look at it (RFC 7748), so this is the same point in other bytes."""
    return key[:31] + bytes([key[31] | 0x80])


def beside_it(key: bytes) -> bytes:
    """The point plus the one of order two, u -> 1 / u. A secret is a multiple of eight, so both agree on the same with it."""
    return pow(int.from_bytes(key, "little"), -1, FIELD).to_bytes(32, "little")


def as_its_own(site: MaskKeys, public: str) -> MaskKey:
    """What a site signs that does not know the secret."""
    return MaskKey(site.site, public, site._owner.sign(_signed_bytes(site.terms, site.site, GRANT, public)).hex())


@pytest.mark.parametrize("spelt", [with_its_top_bit, beside_it])
def test_a_site_that_offers_anothers_key_takes_no_mask_off(spelt: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The site between the two adds for the one and subtracts for the other. The streams must not be the same."""
    first, middle, rogue = federation(tmp_path, collusion=1)
    keys = offered([first, middle, rogue])
    copied = spelt(bytes.fromhex(keys[0].public_key))
    secret = middle._secret(GRANT)
    agreed = [
        secret.exchange(X25519PublicKey.from_public_bytes(key)) for key in (bytes.fromhex(keys[0].public_key), copied)
    ]
    assert agreed[0] == agreed[1]  # else this is no attack
    mask = middle.mask(GRANT, [*keys[:2], as_its_own(rogue, copied.hex())], context_of(0), 1000)
    assert stats.chisquare(np.bincount(mask.view(np.uint8), minlength=256)).pvalue > 1e-9


@pytest.mark.parametrize("spelt", [str.upper, " {}".format, "{}00".format, lambda key: key[:-2]])
def test_a_key_has_one_spelling(spelt: Callable[[str], str], tmp_path: Path) -> None:
    sites = federation(tmp_path)
    keys = offered(sites)
    for whose in (0, 2):
        wrong = as_its_own(sites[2], spelt(keys[whose].public_key))
        with pytest.raises(WallBreach, match="64 hexadecimal digits"):
            sites[1].mask(GRANT, [*keys[:2], wrong], context_of(0), 1)


@pytest.mark.parametrize("point", [0, 1, FIELD - 1, FIELD])
def test_a_key_with_which_all_secrets_agree_on_the_same_is_refused(point: int, tmp_path: Path) -> None:
    sites = federation(tmp_path)
    keys = offered(sites)
    wrong = as_its_own(sites[2], point.to_bytes(32, "little").hex())
    with pytest.raises(WallBreach, match="hides nothing"):
        sites[1].mask(GRANT, [*keys[:2], wrong], context_of(0), 1)


def test_a_key_is_signed_for_the_terms(tmp_path: Path) -> None:
    """The same owners in another federation, with more sites that may tell, sign other keys."""
    sites = federation(tmp_path, 4)
    looser = dataclasses.replace(sites[0].terms, collusion=2)
    with pytest.raises(WallBreach, match="not signed"):
        check_keys(looser, GRANT, offered(sites))


def test_a_site_needs_the_key_that_the_terms_name(tmp_path: Path) -> None:
    (site, *_) = federation(tmp_path)
    for name, owner in (("s1", site._owner), ("s0", Ed25519PrivateKey.generate()), ("s9", site._owner)):
        with pytest.raises(WallBreach, match="do not have this key"):
            MaskKeys(site.terms, name, tmp_path / "ledger.sqlite", owner)


def test_keys_are_fresh_for_each_grant_kept_for_a_restart_and_private(tmp_path: Path) -> None:
    (site, *_) = federation(tmp_path)
    first, again, other = site.offer(GRANT), site.offer(GRANT), site.offer("b" * 32)
    assert first == again and first.public_key != other.public_key
    path = folder_of(tmp_path / "0" / "ledger.sqlite", GRANT) / "mask"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": "none"}, {"sites": ("a",), "keys": ("0" * 64,)}, {"sites": ("a", "a")}, {"keys": ("0" * 64, "0" * 64)},
        {"keys": ("0" * 64, "x" * 64)}, {"collusion": 1}, {"noise": "shared", "collusion": 1}, {"collusion": -1},
        {"sites": ("a", "../b")}, {"block": 0},
    ],
)  # fmt: skip
def test_terms_that_cannot_be_right_are_refused(changes: dict[str, object]) -> None:
    fine = {"name": "f", "sites": ("a", "b"), "keys": ("0" * 64, "1" * 64)}
    Terms(**fine)  # type: ignore[arg-type]
    with pytest.raises(BadInput):
        Terms(**{**fine, **changes})  # type: ignore[arg-type]
