"""Flower at the server: the SuperLink, and a run of it whose messages are frames. The only file here that knows its Grid."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from limbeck.errors import LimbeckError, VaultUnreachable
from limbeck.federated.flower import (
    ACQUIRE,
    FRAMES,
    LINK,
    RECORD,
    process,
    quiet_environment,
    require_alive,
    require_flower,
)
from limbeck.federated.folders import Federation
from limbeck.federated.identities import secret
from limbeck.federated.transport import Frames

PAUSE = 0.2
PATIENCE = 600.0
# Flower wants the description of an app; nobody opens it (limbeck.federated.flower).
APP = b"""[project]
name = "limbeck-federation"
version = "1.0.0"
description = "Frames of a Limbeck federation; no code."
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "limbeck"
[tool.flwr.app.components]
serverapp = "limbeck.federated.flower_server:none"
clientapp = "limbeck.federated.flower_site:none"
[tool.flwr.app.config]
"""


@contextlib.contextmanager
def superlink(folder: Path, federation: Federation, patience: float = 60.0) -> Iterator[subprocess.Popen[bytes]]:
    """A SuperLink with TLS and node authentication, which knows the sites of the federation."""
    require_flower()
    secret(folder / "secret")
    host, _, port = federation.address.rpartition(":")
    arguments = [
        "--ssl-certfile", folder / "server.pem", "--ssl-keyfile", folder / "server.key",
        "--ssl-ca-certfile", folder / "ca.pem", "--enable-supernode-auth", "--isolation", "process",
        "--superexec-auth-secret-file", folder / "secret", "--disable-runtime-dependency-installation",
        "--host", host, "--port", port,
    ]  # fmt: skip
    with process(LINK, arguments, folder, "server.log") as child:
        end = time.monotonic() + patience
        while True:
            require_alive(child, "The federation's server", folder / "server.log")
            try:
                _register(folder, federation)
                break
            except Exception:  # it is not up yet
                if time.monotonic() > end:
                    raise LimbeckError(
                        f"The federation's server did not come up in {patience:g} s; see {folder / 'server.log'}."
                    ) from None
                time.sleep(PAUSE)
        yield child


def _register(folder: Path, federation: Federation) -> None:
    """Tell the SuperLink the node keys of the sites; it takes connections of no other."""
    from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest

    control = _control(folder, federation.address)
    try:
        known = {node.public_key for node in control.ListNodes(ListNodesRequest()).nodes_info}
        for site, node in zip(federation.terms.sites, federation.nodes, strict=True):
            if node.encode() not in known:
                control.RegisterNode(RegisterNodeRequest(public_key=node.encode(), name=site[:32]))
    finally:
        control.close()


def _control(folder: Path, address: str) -> Any:
    from flwr.supercore.control import ControlHttpClient
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

    return ControlHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=(folder / "ca.pem").read_bytes(),
        interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr CLI")],
    )


class FlowerTransport:
    """Frames as messages of one run of Flower.

    patience: seconds that a site has for each answer of a message; one that was not there in time is left out of the replies.
    """

    def __init__(self, folder: Path, federation: Federation, patience: float = PATIENCE) -> None:
        require_flower()
        os.environ.update(quiet_environment(folder / "flower"))
        logging.getLogger("flwr").setLevel(logging.ERROR)
        self._federation, self._patience = federation, patience
        self._sites = {node.encode(): site for site, node in zip(federation.terms.sites, federation.nodes, strict=True)}
        try:
            self._grid, self._heartbeat = _joined_run(folder, federation.address)
        except LimbeckError:
            raise
        except Exception as error:
            raise VaultUnreachable(
                f"The federation's server at {federation.address} cannot be used ({type(error).__name__}).",
                f"limbeck federate server {folder}",
            ) from None

    def exchange(self, frames: Frames, answers: int = 1) -> Frames:
        from flwr.app import ConfigRecord, Message, RecordDict

        patience = self._patience * answers * max(len(asked) for asked in frames.values())
        nodes = self._nodes(set(frames), time.monotonic() + self._patience)
        end = time.monotonic() + patience  # those who are there have all of it, however long others were waited for
        messages = [
            Message(
                RecordDict({RECORD: ConfigRecord({FRAMES: list(frames[site])})}),
                dst_node_id=node,
                message_type="query",
                ttl=patience,
            )
            for site, node in nodes.items()
        ]
        if not messages:
            return {}
        sent = self._retried(lambda: list(self._grid.push_messages(messages)), end)
        waiting = {number: site for number, site in zip(sent, nodes, strict=True) if number}
        found: dict[str, list[bytes]] = {}
        while waiting and time.monotonic() < end:
            for reply in self._retried(lambda: list(self._grid.pull_messages(list(waiting))), end):
                site = waiting.pop(reply.metadata.reply_to_message_id, None)
                # Whatever Flower says about a failure is not looked at: a site that has no frames to give is missing.
                if site is not None and reply.has_content() and RECORD in reply.content:
                    found[site] = [bytes(frame) for frame in reply.content[RECORD][FRAMES]]
            time.sleep(PAUSE)
        return found

    def _nodes(self, wanted: set[str], end: float) -> Mapping[str, int]:
        """The nodes of these sites by their keys, waited for as long as there is patience."""
        while True:
            there = {
                self._sites[node.public_key]: node.node_id
                for node in self._retried(self._grid.get_nodes, end)
                if node.public_key in self._sites
            }
            if wanted <= there.keys() or time.monotonic() > end:
                return {site: there[site] for site in self._federation.terms.sites if site in wanted & there.keys()}
            time.sleep(PAUSE)

    def _retried(self, call: Any, end: float) -> Any:
        while True:
            try:
                return call()
            except Exception as error:
                turned_away = getattr(getattr(error, "response", None), "status_code", None) in (401, 403)
                if turned_away or time.monotonic() > end:
                    raise VaultUnreachable(
                        f"The federation's server at {self._federation.address} went away ({type(error).__name__})."
                    ) from None
                time.sleep(PAUSE)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._heartbeat.stop()
        with contextlib.suppress(Exception):
            from flwr.proto.runtime_pb2 import PushTaskOutputRequest

            self._grid._runtime_client.PushTaskOutput(PushTaskOutputRequest(sub_status="completed", details=""))
        with contextlib.suppress(Exception):
            self._grid.close()


def _joined_run(folder: Path, address: str) -> tuple[Any, Any]:
    """Start a run and take its server's part in this process."""
    from flwr.cli.build import build_fab_from_files
    from flwr.common.serde import fab_to_proto, run_from_proto
    from flwr.proto.control_pb2 import StartRunRequest
    from flwr.proto.runtime_pb2 import AcquireTaskRequest, PullTaskInputRequest
    from flwr.supercore.fab import Fab
    from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor, SuperExecAuthHttpInterceptor
    from flwr.supercore.runtime import RuntimeHttpClient
    from flwr.supercore.task_identity import TaskIdentity
    from flwr.superlink.grid.http_grid import HttpGrid

    root = (folder / "ca.pem").read_bytes()
    app, _ = build_fab_from_files({"pyproject.toml": APP})
    control = _control(folder, address)
    run = control.StartRun(StartRunRequest(fab=fab_to_proto(Fab(hashlib.sha256(app).hexdigest(), app, {})))).run_id
    control.close()
    client = RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=root,
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="SuperExec"),
            SuperExecAuthHttpInterceptor(master_secret=secret(folder / "secret"), protected_methods=ACQUIRE),
        ],
    )
    task = None
    for _ in range(300):
        found = client.AcquireTask(AcquireTaskRequest(supported_task_types=["flwr-serverapp"]))
        if found.HasField("task") and found.token and found.task.run_id == run:  # others, of runs that died, expire
            task = found
            break
        time.sleep(0.1)
    client.close()
    if task is None:
        raise LimbeckError("The federation's server does not start runs.")
    grid = HttpGrid(runtime_api_address=address, insecure=False, root_certificates=root, token=task.token)
    grid._retry_invoker = cast(
        Any, None
    )  # how long to try on is for `exchange` to say; Flower's own would interrupt this process
    heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(grid._runtime_client))
    heartbeat.start()
    given = grid._runtime_client.PullTaskInput(PullTaskInputRequest())
    TaskIdentity.task_id, TaskIdentity.run_id = given.task_id, given.run.run_id
    TaskIdentity.node_id = given.context.node_id
    grid.set_run(run_from_proto(given.run))
    return grid, heartbeat
