"""Which address shows what. A site knows nothing of sockets: it turns a path and a query into a reply."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote

from limbeck.errors import LimbeckError
from limbeck.release.bundle import pack
from limbeck.serve import pages
from limbeck.serve.access import unguessable
from limbeck.serve.budgets import Budgets
from limbeck.serve.growing import growing, may_grow
from limbeck.serve.inside import NotInside, plain_stamps
from limbeck.serve.runs import FINISHED, RUNNING, STOPPED, Catalog, RunInfo
from limbeck.serve.shelf import Shelf

HTML, JSON, SVG, ZIP, PNG = (
    "text/html; charset=utf-8",
    "application/json",
    "image/svg+xml",
    "application/zip",
    "image/png",
)
# A report comes from a folder, so it is shown as a stranger's page: no script, no form, no other page, nothing loaded.
REPORT_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox"
)
ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1b6670"/>'
    b'<path d="M11 7v18h11" fill="none" stroke="#fff" stroke-width="4"/></svg>'
)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """`file` is sent instead of `body` where it is large; whoever sends it closes it."""

    status: int = 200
    kind: str = HTML
    body: bytes = b""
    file: IO[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Site:
    """A folder of runs and a ledger, both only ever read."""

    def __init__(self, root: Path, ledger: Path | None) -> None:
        self.catalog = Catalog(root)
        self.shelf = Shelf(self.catalog)
        self.budgets = Budgets(ledger)

    def reply(self, parts: tuple[str, ...], query: Mapping[str, str]) -> Reply:
        """`parts`: the decoded parts of the path."""
        try:
            match parts:
                case ():
                    return self._list()
                case ("api", "live"):
                    return self._live()
                case ("budget",):
                    found = self.budgets.look()
                    return _page(lambda nonce: pages.budget(nonce, found=found))
                case ("compare",):
                    return self._compare(query.get("a", ""), query.get("b", ""))
                case ("icon.svg",):
                    return Reply(kind=SVG, body=ICON, headers={"Cache-Control": "max-age=86400"})
                case ("run", *names, "report" | "download" | "growing" as what) if self._is_run(names):
                    name = "/".join(names)
                    ways = {"report": self._report, "download": self._download, "growing": self._growing}
                    return ways[what](name)
                case ("run", *names):
                    return self._run("/".join(names))
                case _:
                    return not_found()
        except NotInside:
            return not_found()
        except LimbeckError as error:
            command = None if error.next_command is None else self._without_paths(error.next_command)
            return refused(409, self._without_paths(error.message), command)

    def _without_paths(self, text: str) -> str:
        """A sentence for whoever looks: names below the folder of runs, and not where that folder lies."""
        for root in {str(self.catalog.root), str(self.catalog.root.resolve())}:
            text = text.replace(f"{root}/", "").replace(root, "the folder of runs")
        return text

    def _list(self) -> Reply:
        runs = self.catalog.runs()
        scores = self.shelf.scores(runs)
        return _page(lambda nonce: pages.overview(nonce, runs=runs, scores=scores, version=_version(runs)))

    def _live(self) -> Reply:
        runs = self.catalog.runs()
        running = {info.name: pages.progress_values(info) for info in runs if info.state == RUNNING}
        values = {"version": _version(runs), "running": running}
        return Reply(kind=JSON, body=json.dumps(values).encode(), headers={"Cache-Control": "no-store"})

    def _run(self, name: str) -> Reply:
        info = self._found(name)
        version = _version(self.catalog.runs())
        grows = info.state in (RUNNING, STOPPED) and may_grow(self.catalog.root, name)
        return _page(lambda nonce: pages.run(nonce, info=info, version=version, grows=grows))

    def _report(self, name: str) -> Reply:
        text = self.shelf.page(self._finished(name))
        return Reply(body=text.encode("utf-8", "replace"), headers={"Content-Security-Policy": REPORT_POLICY})

    def _download(self, name: str) -> Reply:
        """The bundler verifies the release at every download, whatever was shown before."""
        folder = self.catalog.root / self._finished(name).name
        plain_stamps(folder)
        file = tempfile.TemporaryFile()  # noqa: SIM115  whoever sends it closes it
        try:
            packed = pack(folder, file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        named = f"attachment; filename=\"{packed.name}.zip\"; filename*=UTF-8''{quote(packed.name)}.zip"
        headers = {"Content-Disposition": named, "Content-Length": str(packed.size), "Cache-Control": "no-store"}
        return Reply(kind=ZIP, file=file, headers=headers)

    def _compare(self, first: str, second: str) -> Reply:
        releases = [info for info in self.catalog.runs() if info.state == FINISHED]
        chosen = [info for name in (first, second) for info in releases if info.name == name]
        sides = [
            pages.Side(info=info, report=self.shelf.report(info), tables=self.shelf.tables(info)) for info in chosen
        ]
        return _page(lambda nonce: pages.compare(nonce, releases=releases, sides=sides, chosen=(first, second)))

    def _growing(self, name: str) -> Reply:
        """The set of a run at work, as far as its answers go."""
        info = self._found(name)
        if info.state not in (RUNNING, STOPPED):
            raise NotInside
        return Reply(kind=PNG, body=growing(self.catalog.root, name), headers={"Cache-Control": "no-store"})

    def _is_run(self, names: list[str]) -> bool:
        return bool(names) and self.catalog.run("/".join(names)) is not None

    def _found(self, name: str) -> RunInfo:
        info = self.catalog.run(name)
        if info is None:
            raise NotInside
        return info

    def _finished(self, name: str) -> RunInfo:
        info = self._found(name)
        if info.state != FINISHED:
            raise NotInside
        return info


def not_found() -> Reply:
    return refused(404, "There is nothing here.")


def refused(status: int, message: str, next_command: str | None = None) -> Reply:
    return _page(lambda nonce: pages.failure(nonce, message=message, next_command=next_command), status)


def _page(make: Callable[[str], str], status: int = 200) -> Reply:
    """A page of our own, whose one script and one style sheet carry a number that is good for this reply only."""
    nonce = unguessable()
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; img-src 'self' data:; connect-src 'self'; "
        "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    )
    body = make(nonce).encode("utf-8", "replace")
    return Reply(status=status, body=body, headers={"Content-Security-Policy": policy, "Cache-Control": "no-store"})


def _version(runs: list[RunInfo]) -> str:
    """Changes when a run comes, goes, begins or ends, so that an open page knows when to load itself again."""
    text = json.dumps([(info.name, info.state, info.created) for info in runs])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
