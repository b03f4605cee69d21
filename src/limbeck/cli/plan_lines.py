"""What `limbeck plan` says of a plan: its queries, what they cost, and what the release will keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limbeck.cli.output import table
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.unit import adjacency_and_unit

if TYPE_CHECKING:
    from limbeck.runs.planning import Quote


def plan_lines(found: Quote) -> list[str]:
    from limbeck.release.working_size import METHOD, SETTING

    drawn, price = found.plan, found.plan.price
    rows = [("query", "map", "clip", "noise", "rate", "count", "share of the budget")] + [
        (
            query.label,
            query.map,
            f"{finite_or_word(query.clip)}"[:8],
            f"{query.noise_multiplier:g}",
            f"{query.chance:.6g}",
            str(query.count),
            f"{share:.1%}",
        )
        for query, share in zip(drawn.queries, drawn.shares, strict=True)
    ]
    epsilon, adjacency = finite_or_word(price.epsilon), adjacency_and_unit(price.adjacency, found.unit)
    lines = [
        f"{drawn.method} on {drawn.dataset}: epsilon {epsilon}, delta {price.delta:g}, {adjacency}",
        f"PLD {finite_or_word(price.epsilon_pld)}, RDP {finite_or_word(price.epsilon_rdp)}",
        *table(rows),
    ]
    if drawn.method == METHOD and drawn.settings.get(SETTING):
        lines.append(
            f"pictures are looked at, and made, at {drawn.settings[SETTING]} pixels a side at most; train on the set at that "
            "size, as 'limbeck evaluate' does (--set size=N chooses another)"
        )
    if found.kept_bytes:
        lines.append(
            f"the release keeps its answers, {found.kept_bytes / 1e6:.1f} MB, so that anybody can make more of them for nothing "
            "(--set answers=false leaves them out)"
        )
    if drawn.method == METHOD and (steps := drawn.settings.get("generator")):
        lines.append(
            f"a generator is matched to its answers in {steps} steps when the set is done, and released: 'limbeck sample' draws "
            "from it, for nothing (--set generator=0 leaves it out)"
        )
    if found.noise_multiplier_rdp is not None:
        lines.append(
            f"noise of '{drawn.queries[0].label}' {found.noise_multiplier:g}; by RDP alone, as in the papers, "
            f"{found.noise_multiplier_rdp:g}"
        )
    return lines
