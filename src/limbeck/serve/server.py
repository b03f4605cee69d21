"""The web server: the standard library's, one thread per browser, so many at most, answering GET and HEAD and nothing else."""

from __future__ import annotations

import contextlib
import errno
import shlex
import shutil
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from limbeck.errors import BadInput
from limbeck.serve.access import Access
from limbeck.serve.connections import Connections, Limits, turn_away
from limbeck.serve.site import Reply, Site, not_found, refused

LONGEST_TARGET = 4000
DEFAULT = Limits()
COMMON_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

SECONDS_TO_NOTICE_THE_END = 0.2


class Server(ThreadingHTTPServer):
    """A site at an address. `daemon_threads`: a browser that keeps a connection open does not keep the server alive."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], site: Site, access: Access, limits: Limits = DEFAULT) -> None:
        self.site, self.access, self.connections = site, access, Connections(limits)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        # The base class asks the name service for its own name, which may take seconds and is not needed.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.connections.enter(request):
            turn_away(request)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self.connections.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.leave(request)

    def service_actions(self) -> None:
        """Called by the base class several times a second."""
        self.connections.cut()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle is no event, and a traceback could quote a name."""

    @property
    def url(self) -> str:
        """Where to look, with the token if there is one."""
        host = self.server_name
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        base = f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"
        return base if self.access.token is None else f"{base}?{urlencode({'token': self.access.token})}"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = DEFAULT.seconds  # of a single read or write; the whole is timed by the server's connections

    def handle_one_request(self) -> None:
        self._allow(self.server.connections.limits.seconds)
        super().handle_one_request()

    def _allow(self, seconds: float | None) -> None:
        self.server.connections.allow(self.connection, seconds)

    def do_GET(self) -> None:
        self._send(self._reply())

    def do_HEAD(self) -> None:
        self._send(self._reply(), with_body=False)

    def _not_allowed(self) -> None:
        self.close_connection = True  # a body that nobody reads would be taken for the next request
        reply = refused(405, "This page can only be read.")
        self._send(Reply(status=405, body=reply.body, headers={**reply.headers, "Allow": "GET, HEAD"}))

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _not_allowed

    def _reply(self) -> Reply:
        """Checks first, in the order in which they say least: the host, the token, then whether there is such a page."""
        self._allow(None)  # making a page may take longer than sending it: a release is verified
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # nobody reads a body here, and it must not be taken for the next request
        access = self.server.access
        if not access.knows_host(self.headers.get("Host", "")):
            return refused(403, "This page is not served under that name.")
        target = _target(self.path)
        if target is None:
            return not_found()
        parts, query = target
        offered = query.pop("token", None)
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not access.lets_in(offered or bearer, self.headers.get("Cookie"), self._cookie_name()):
            return refused(401, "A token is needed. Open the address that limbeck serve printed.")
        if offered is not None:
            return self._welcome(parts, query, offered)
        try:
            return self.server.site.reply(parts, query)
        except Exception as error:
            # The kind of an unforeseen error is safe to show, its words are not: they may quote a file.
            return refused(500, f"This page could not be made ({type(error).__name__}).")

    def _welcome(self, parts: tuple[str, ...], query: dict[str, str], offered: str) -> Reply:
        """Take the token out of the address, so that no history, screenshot or copied link holds it."""
        path = "/" + "/".join(quote(part, safe="") for part in parts)
        headers = {"Location": f"{path}?{urlencode(query)}" if query else path, "Cache-Control": "no-store"}
        if self.server.access.is_token(offered):
            headers["Set-Cookie"] = (
                f"{self._cookie_name()}={self.server.access.session}; HttpOnly; SameSite=Lax; Path=/"
            )
        return Reply(status=303, headers=headers)

    def _cookie_name(self) -> str:
        # Browsers share cookies between the ports of a host, so two servers need two names.
        return f"limbeck-{self.server.server_port}"

    def _send(self, reply: Reply, with_body: bool = True) -> None:
        headers = {
            "Content-Type": reply.kind,
            "Content-Length": str(len(reply.body)),
            **COMMON_HEADERS,
            **reply.headers,
        }
        if self.server.connections.crowded:
            headers["Connection"] = "close"  # which also ends it here
        self._allow(self.server.connections.limits.to_take(int(headers["Content-Length"])))
        with reply.file or contextlib.nullcontext() as file, contextlib.suppress(ConnectionError, TimeoutError):
            self.send_response(reply.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if not with_body:
                return
            if file is None:
                self.wfile.write(reply.body)
            else:
                shutil.copyfileobj(file, self.wfile)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses by itself, in our own words."""
        self.close_connection = True
        self.request_version = getattr(self, "request_version", None) or "HTTP/1.1"
        self._send(refused(code, "That is no request for this page."), with_body=getattr(self, "command", "") != "HEAD")

    def version_string(self) -> str:
        return "limbeck"

    def log_message(self, format: str, *arguments: Any) -> None:
        """No log: an address may hold a token."""


def _target(raw: str) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """The decoded parts of the path and the query; None for what no page has."""
    if len(raw) > LONGEST_TARGET or not raw.startswith("/"):
        return None
    try:
        split = urlsplit("//host" + raw)
        parts = tuple(unquote(part, errors="strict") for part in split.path.split("/") if part)
        query = dict(parse_qsl(split.query, keep_blank_values=True, errors="strict", max_num_fields=20))
    except ValueError:
        return None
    if any(part in (".", "..") or "/" in part or not part.isprintable() for part in parts):
        return None
    return parts, query


@contextlib.contextmanager
def start(
    runs: Path, ledger: Path | None, host: str, port: int, access: Access, limits: Limits = DEFAULT
) -> Iterator[Server]:
    """A server that listens; it answers in threads of its own until the block ends."""
    if not 0 <= port <= 65_535:
        raise BadInput(f"A port lies in 0 ... 65535, got --port {port}; 0 takes a free one.")
    try:
        server = Server((host, port), Site(runs, ledger), access, limits)
    except OSError as error:
        raise _no_address(error, runs, host, port) from None
    server.site.catalog.runs()  # read a long folder before the first browser waits for it
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": SECONDS_TO_NOTICE_THE_END}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _no_address(error: OSError, runs: Path, host: str, port: int) -> BadInput:
    command = f"limbeck serve {shlex.quote(str(runs))} --port 0"
    if error.errno == errno.EADDRINUSE:
        return BadInput(f"Port {port} of {host} is in use by another program; take another one.", command)
    if error.errno == errno.EACCES:
        return BadInput(f"Port {port} is not for this user; take one above 1023.", command)
    return BadInput(f"{host} is no address of this machine ({error.strerror}); use 127.0.0.1.", command)
