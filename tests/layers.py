"""The rooms of the house, low to high: a module imports from its own room and from rooms below it, never upwards.

    python -m tests.layers     prints the rooms and what each uses; ends with 1 if an import goes upwards or in a circle

Every import counts: at the top of a file, inside a function, for types only, or by `import_module` with a name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "limbeck"
ROOT = "limbeck"

LAYERS = (
    ("errors", "sentences with exit codes"),
    ("files", "atomic writes, JSON"),
    ("progress", "how long work shows itself"),
    ("privacy", "schema, queries, accounting, plan: the language of the walls"),
    ("nets", "architectures, generators, kernels, training"),
    ("data", "readers, sources, named sets, surveys"),
    ("vault", "the contract, the local vault, ledger, maps, ensemble"),
    ("methods", "one page each"),
    ("forecast", "how useful a set will be and how long it takes, before it is paid for"),
    ("release", "certificate, writer, reader, editions, bundle"),
    ("evaluate", "scores of sets and models, fidelity"),
    ("report", "pictures, pages, cards"),
    ("runs", "request, folder, checkpoint, condense, resume, estimator"),
    ("federated", "many owners: sites, masks, the server, Flower"),
    ("experiments", "sweep, comparison, continual, demo"),
    ("serve", "a local web page over a folder of runs"),
    ("api", "the public names"),
    ("cli", "the command"),
    ("__main__", "python -m limbeck"),
    ("__init__", "the front door: public names, loaded when first used"),
)
HEIGHT = {room: height for height, (room, _) in enumerate(LAYERS)}


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Every module by its dotted name; a package stands for its __init__."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = (ROOT, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path, known: Mapping[str, Path], package: Path = PACKAGE) -> Iterator[tuple[int, str]]:
    """(line, module) for every import of a module of the package."""
    own = (ROOT, *path.relative_to(package).parts[:-1])
    for line, name in _imports_in(path.read_text(encoding="utf-8"), own):
        module = name
        while module and module not in known:  # what is imported may be a name inside of a module
            module = module.rpartition(".")[0]
        if module:
            yield line, module


@cache
def _imports_in(text: str, own: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) for every import in a text. Kept, because tests look at many copies of the same files."""
    nodes = ast.walk(ast.parse(text))
    return tuple((getattr(node, "lineno", 0), name) for node in nodes for name in _named(node, own))


def _named(node: ast.AST, own: tuple[str, ...]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == ROOT)
    elif isinstance(node, ast.ImportFrom):
        base = own[: len(own) - node.level + 1] if node.level else ()
        module = ".".join([*base, *([node.module] if node.module else [])])
        if module.split(".")[0] == ROOT:
            yield from (f"{module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("import_module", "__import__"):
            texts = [word.value for word in node.args if isinstance(word, ast.Constant)]
            yield from (text for text in texts if isinstance(text, str) and text.split(".")[0] == ROOT)


def graph(package: Path = PACKAGE) -> dict[str, dict[str, int]]:
    """For every module the modules that it imports, with the line of the first import."""
    known = modules(package)
    found: dict[str, dict[str, int]] = {name: {} for name in known}
    for name, path in known.items():
        for line, module in imports(path, known, package):
            if module != name:
                found[name].setdefault(module, line)
    return found


def upward(package: Path = PACKAGE) -> list[str]:
    """Sentences about imports from a room above, and about rooms that are not in the list."""
    known, said = modules(package), []
    for name, used in graph(package).items():
        if room_of(name) not in HEIGHT:
            said.append(f"{name} stands in no room of the list")
            continue
        for module, line in used.items():
            if HEIGHT.get(room_of(module), len(LAYERS)) > HEIGHT[room_of(name)]:
                where = known[name].relative_to(package.parent).as_posix()
                said.append(f"{where}:{line} imports {module}, which is in a room above")
    return said


def circles(package: Path = PACKAGE) -> list[str]:
    """Groups of modules, and groups of packages, that import one another (strongly connected parts of the graph).

    A package and what lies inside of it are no two places, so imports between them count for their modules only.
    """
    known, by_module = modules(package), graph(package)
    by_package: dict[str, dict[str, int]] = {}
    for name, used in by_module.items():
        mine = _package_of(name, known)
        for module, line in used.items():
            other = _package_of(module, known)
            if not f"{mine}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{mine}."):
                by_package.setdefault(mine, {}).setdefault(other, line)
    return [" <-> ".join(sorted(group)) for group in (*_strong(by_module), *_strong(by_package))]


def _package_of(module: str, known: Mapping[str, Path]) -> str:
    """A file at the top of the house is a room by itself."""
    is_room = known[module].name == "__init__.py" or module.count(".") == 1
    return module if is_room else module.rpartition(".")[0]


def _strong(edges: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """Tarjan's algorithm; groups of one are left out."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                groups.append(group)

    for name in edges:
        if name not in index:
            visit(name)
    return groups


def main() -> int:
    used: dict[str, set[str]] = {room: set() for room in HEIGHT}
    for name, found in graph().items():
        used.setdefault(room_of(name), set()).update(room_of(module) for module in found)
    for room, words in LAYERS:
        below = sorted(used[room] - {room}, key=lambda other: HEIGHT.get(other, -1))
        print(f"{room:12} {words}\n{'':12}   uses {', '.join(below) or 'nothing'}")
    faults = [*upward(), *(f"a circle: {group}" for group in circles())]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
