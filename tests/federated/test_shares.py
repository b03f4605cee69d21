"""What shares of noise add up to, and what answers over sites cost seen from where."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy import stats

from limbeck.privacy.accounting import price
from limbeck.privacy.federation import LEAST_SHARE, MOST_SITES, Terms, Views, reach_of_a_site, views
from limbeck.privacy.grid import NOISE_BITS
from limbeck.privacy.queries import ClippedSum, TeacherGradient, TeacherVote
from limbeck.vault.maps.bound import Bound

KEYS = tuple(f"{number:064x}" for number in range(8))


def terms_of(sites: int, noise: str = "shared", collusion: int = 0) -> Terms:
    return Terms(
        name="f", sites=tuple(f"s{i}" for i in range(sites)), keys=KEYS[:sites], noise=noise, collusion=collusion
    )


@pytest.mark.parametrize("shares", [1, 2, 3, 5])
@pytest.mark.parametrize("width", [0.8, 1.0, 1.3, 1.6])
def test_a_sum_of_rounded_shares_is_a_rounded_sum_but_for_the_stated_gap(shares: int, width: float) -> None:
    """The proof in limbeck.privacy.federation, by brute force, at widths that are small enough for a gap to be seen."""
    reach = 60
    values = np.arange(-reach, reach + 1)
    one = stats.norm.cdf(values + 0.5, scale=width) - stats.norm.cdf(values - 0.5, scale=width)
    summed = one
    for _ in range(shares - 1):
        summed = np.convolve(summed, one)
    middle = len(summed) // 2
    # P(round(Z + W) = n) with W a sum of shares - 1 uniforms: the Gaussian smoothed by all `shares` of them, at n.
    fine = 200
    grid = np.arange(-reach * fine, reach * fine + 1) / fine
    density = stats.norm.pdf(grid, scale=width * math.sqrt(shares))
    box = np.full(fine + 1, 1.0 / fine)
    box[[0, -1]] /= 2
    for _ in range(shares):
        density = np.convolve(density, box, mode="same")
    near = np.arange(-12, 13)
    gap = np.abs(summed[middle + near] - density[reach * fine + near * fine]).max()
    bound = (2 * shares + 1) * 3 * math.exp(-(width**2) * math.pi**2 / 2)
    assert gap <= bound + 1e-5  # the grid's own error
    if shares > 1 and width == 0.8:
        assert gap > 1e-6  # there is one to be seen


def test_shares_are_wide_beside_a_step() -> None:
    """The grid makes noise at least 2^20 steps wide, so the least share is as wide as the proof wants, at any number of sites."""
    assert 2.0**NOISE_BITS / math.sqrt(MOST_SITES) > LEAST_SHARE
    # and with that, all terms but the first are below 2^-1000 by far
    assert LEAST_SHARE**2 * math.pi**2 / 2 / math.log(2) > 7_000_000


@pytest.mark.parametrize(("sites", "collusion"), [(2, 0), (4, 0), (4, 1), (4, 2), (7, 5)])
def test_shares_of_those_who_do_not_tell_are_all_of_the_noise(sites: int, collusion: int) -> None:
    terms = terms_of(sites, collusion=collusion)
    assert 1 <= terms.share**2 * (sites - collusion) < 1 + 1e-9
    assert terms.total**2 == pytest.approx(sites / (sites - collusion))


QUERIES = (
    ClippedSum(label="sums", map="identity", clip=1.0, noise_multiplier=3.0, rate=(0.1,), count=40),
    TeacherGradient(label="g", map="critic_gradient", clip=2.0, noise_multiplier=5.0, teachers=10, draws=2, count=3),
)


@pytest.mark.parametrize("terms", [terms_of(4, "site"), terms_of(4), terms_of(4, collusion=2)])
def test_prices_follow_from_who_sees_what(terms: Terms) -> None:
    found, sites = views(QUERIES, 1e-5, terms), len(terms.sites)

    def at(factor: float) -> float:
        louder = dataclasses.replace(QUERIES[0], noise_multiplier=3.0 * factor)
        return price((louder, QUERIES[1]), 1e-5).epsilon

    honest = sites - terms.collusion
    assert found.server.epsilon == price(QUERIES, 1e-5).epsilon
    public = math.sqrt(sites) if terms.noise == "site" else math.sqrt(sites / honest)
    assert found.public.epsilon == pytest.approx(at(public), abs=2e-6)
    alone = 1.0 if terms.noise == "site" else 1 / math.sqrt(honest)
    assert found.all_told.epsilon == pytest.approx(at(alone), abs=2e-6)
    assert found.public.epsilon <= found.server.epsilon <= found.all_told.epsilon


def test_terms_and_prices_are_read_back() -> None:
    terms = terms_of(4, collusion=1)
    assert Terms.from_dict(terms.to_dict()) == terms
    assert terms.digest() != dataclasses.replace(terms, collusion=2).digest()
    found = views(QUERIES, 1e-5, terms)
    assert type(found).from_dict(found.to_dict()) == found


GRADIENT = TeacherGradient(label="g", map="m", clip=2.0, noise_multiplier=3.0, teachers=50, draws=9, count=4)
VOTE = TeacherVote(label="v", map="m", clip=2.0, noise_multiplier=30.0, teachers=5, count=4)


def test_a_whole_site_costs_what_all_its_teachers_can_move() -> None:
    """Nothing is gained by which teacher was drawn, and nothing by how many records it takes to change them all."""
    for query, reach in ((GRADIENT, 3.0), (VOTE, 5.0)):
        found = views((query,), 1e-5, terms_of(4)).site
        plain = ClippedSum(
            label="s", map="m", clip=2.0, noise_multiplier=query.noise_multiplier / reach, by_class=False, count=4
        )
        assert found is not None and found.epsilon == pytest.approx(price((plain,), 1e-5).epsilon, rel=1e-6)
        assert found.epsilon >= price((query,), 1e-5).epsilon
    assert views((GRADIENT, QUERIES[0]), 1e-5, terms_of(4)).site is None  # a sum over records has no bound


def test_no_answer_of_a_site_moves_further_than_its_reach() -> None:
    """All teachers of a site are others, as far apart as they can be: what they answer moves by the reach, and no more."""
    apart = torch.ones(GRADIENT.draws, 4)
    half = Bound.of(GRADIENT).half()
    moved = float((half.rows(1e6 * apart) - half.rows(-1e6 * apart)).norm()) * (
        GRADIENT.step if GRADIENT.on_grid else 1.0
    )
    limit = reach_of_a_site(GRADIENT)
    assert limit is not None and 0.99 * limit * GRADIENT.clip <= moved <= limit * GRADIENT.clip


def test_prices_of_versions_that_knew_no_whole_site_are_read() -> None:
    found = views((GRADIENT,), 1e-5, terms_of(4))
    older = {name: value for name, value in found.to_dict().items() if name != "site"}
    assert Views.from_dict(older) == dataclasses.replace(found, site=None)
    assert Views.from_dict(found.to_dict()) == found
