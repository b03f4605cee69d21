"""How `limbeck --help` is laid out: commands in groups, in the order of a first run, each with an example."""

from __future__ import annotations

import typer

MAKE, KNOW, SHARE, USE, STUDY, OWN = (
    "Make a set", "Know before you spend", "Share it", "Use and judge it", "Study methods", "Owners, budgets, vaults",
)  # fmt: skip
# By the words of a command: its group (of commands at the top) and examples.
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "demo": (MAKE, ("limbeck demo --out limbeck-demo",)),
    "plan": (KNOW, ("limbeck plan mnist --epsilon 1", "limbeck plan people.csv --epsilon 1 --rows 1000 --json")),
    "rehearse": (KNOW, ("limbeck rehearse mnist --epsilon 1 --out rehearsal",)),
    "methods": (KNOW, ("limbeck methods elixir",)),
    "privacy": (KNOW, ("limbeck privacy --rate 0.01 --steps 1000 --epsilon 1",)),
    "schema": (KNOW, ()),
    "doctor": (KNOW, ("limbeck doctor",)),
    "condense": (
        MAKE,
        (
            "limbeck condense mnist --epsilon 1 --out release",
            "limbeck condense people.csv --epsilon 1 --rows 50000 --out table",
        ),
    ),
    "resume": (MAKE, ("limbeck resume release",)),
    "distil": (MAKE, ("limbeck distil release --per-class 500 --out larger",)),
    "join": (MAKE, ("limbeck join ours theirs --name both --out union",)),
    "federate": (MAKE, ()),
    "verify": (SHARE, ("limbeck verify release",)),
    "report": (SHARE, ("limbeck report release --evaluation scores.json",)),
    "bundle": (SHARE, ("limbeck bundle release --out release.zip",)),
    "publish": (SHARE, ("limbeck publish release --to hospital/scans-synthetic --dry-run",)),
    "evaluate": (USE, ("limbeck evaluate release --test mnist --models convnet --out scores.json",)),
    "sample": (USE, ("limbeck sample table --count 1000 --where 'age>60'",)),
    "fidelity": (USE, ("limbeck fidelity release --data mnist --out fidelity.json",)),
    "serve": (USE, ("limbeck serve runs",)),
    "curve": (STUDY, ("limbeck curve release --test mnist --out curve.json",)),
    "sweep": (STUDY, ("limbeck sweep mnist --vary epsilon=0.5,1,2 --out sweep --price",)),
    "compare": (
        STUDY,
        ("limbeck compare mnist --methods elixir,ldpdc,dpmerf --epsilon 1 --repeats 3 --out compared --price",),
    ),
    "continual": (STUDY, ("limbeck continual mnist --stages 5 --epsilon 1 --out stages",)),
    "budget": (OWN, ()),
    "owner": (OWN, ()),
    "data": (OWN, ()),
    "vault": (OWN, ()),
    "budget set": ("", ("limbeck budget set scans --epsilon 3 --delta 1e-5",)),
    "budget show": ("", ("limbeck budget show scans",)),
    "budget split": ("", ("limbeck budget split scans/ sites --hash 3",)),
    "budget void": ("", ("limbeck budget void scans 3fa94c",)),
    "budget allow": ("", ("limbeck budget allow analyst --ledger postgresql://books@db.example/limbeck",)),
    "data list": ("", ("limbeck data list",)),
    "data get": ("", ("limbeck data get mnist",)),
    "schema draft": ("", ("limbeck schema draft people.csv --label income --out people.csv.limbeck.toml",)),
    "owner set": (
        "",
        ("limbeck owner set --name 'City Hospital' --contact privacy@hospital.example --licence CC-BY-4.0",),
    ),
    "owner show": ("", ("limbeck owner show",)),
    "vault serve": ("", ("limbeck vault serve scans/ --socket /run/limbeck/scans.sock --group analysts",)),
    "federate init": ("", ()),
    "federate server": ("", ()),
    "federate site": ("", ()),
    "federate run": ("", ()),
    "federate simulate": ("", ()),
}
ORDER = (KNOW, MAKE, SHARE, USE, STUDY, OWN)


def lay_out(app: typer.Typer) -> None:
    """Give every command its group and its example, and bring them into order. One that is not listed stands by itself."""
    for found in app.registered_commands:
        panel, examples = COMMANDS.get(_name(found), ("", ()))
        found.rich_help_panel = panel or found.rich_help_panel
        found.epilog = epilog(examples) or found.epilog
    for group in app.registered_groups:
        panel, _ = COMMANDS.get(str(group.name), ("", ()))
        group.rich_help_panel = panel or group.rich_help_panel
        assert group.typer_instance is not None
        for found in group.typer_instance.registered_commands:
            _, examples = COMMANDS.get(f"{group.name} {_name(found)}", ("", ()))
            found.epilog = epilog(examples) or found.epilog
    app.registered_commands.sort(key=lambda found: _place(_name(found)))
    app.registered_groups.sort(key=lambda group: _place(str(group.name)))


def epilog(examples: tuple[str, ...]) -> str:
    """A line of its own for each: what is only broken, not parted by an empty line, is joined again."""
    return "\n\n".join([f"{'Example' if len(examples) == 1 else 'Examples'}:", *examples]) if examples else ""


def _name(found: typer.models.CommandInfo) -> str:
    assert found.callback is not None or found.name
    return found.name or found.callback.__name__.replace("_", "-")  # type: ignore[union-attr]


def _place(name: str) -> tuple[int, int]:
    panel = COMMANDS.get(name, ("", ()))[0]
    return (ORDER.index(panel) if panel in ORDER else len(ORDER), [*COMMANDS].index(name) if name in COMMANDS else 0)
