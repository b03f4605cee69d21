"""Flower at a site: the SuperNode that connects, and the loop that hands its messages to the desk. Nothing else knows either."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from limbeck.errors import LimbeckError
from limbeck.federated.desk import Desk, Log
from limbeck.federated.flower import (
    ACQUIRE,
    FRAMES,
    NODE,
    RECORD,
    free_port,
    process,
    quiet_environment,
    require_alive,
    require_flower,
)
from limbeck.federated.identities import secret
from limbeck.vault.process.failures import FAILED
from limbeck.vault.process.requests import Failed, message_of
from limbeck.vault.process.wire import to_bytes

PAUSE = 0.1


@contextlib.contextmanager
def supernode(folder: Path, address: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A SuperNode that connects with the site's node key, and where its messages are fetched on this machine."""
    require_flower()
    port = free_port()
    secret(folder / "secret")
    arguments = [
        "--superlink", address, "--root-certificates", folder / "ca.pem",
        "--auth-supernode-private-key", folder / "node.key", "--isolation", "process",
        "--superexec-auth-secret-file", folder / "secret", "--host", "127.0.0.1", "--port", port,
    ]  # fmt: skip
    with process(NODE, arguments, folder, "site.log") as child:
        yield child, f"127.0.0.1:{port}"


def serve(
    desk: Desk, folder: Path, child: subprocess.Popen[bytes], runtime: str, log: Log, ended: threading.Event
) -> None:
    """Answer messages until `ended`. Guarantee: whatever goes wrong, what leaves is frames of the desk's, and no text."""
    os.environ.update(quiet_environment(folder / "flower"))
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.interceptors import SuperExecAuthHttpInterceptor

    key = SuperExecAuthHttpInterceptor(master_secret=secret(folder / "secret"), protected_methods=ACQUIRE)
    client, up = _client(runtime, key), False
    while not ended.wait(PAUSE):
        require_alive(child, "The site's connection", folder / "site.log")
        try:
            found = client.AcquireTask(AcquireTaskRequest(supported_task_types=["flwr-clientapp"]))
            up = True
            if found.HasField("task") and found.token:
                _answer(desk, runtime, found.token)
        except LimbeckError:
            raise
        except Exception as error:  # the node is not up yet, or lost its message; whoever asked asks again
            if up:
                log(f"a message was not answered: {type(error).__name__}")
            ended.wait(0.5)


def _answer(desk: Desk, runtime: str, token: str) -> None:
    """One message. The app that Flower sends along is not opened."""
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
    from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor
    from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

    client = _client(runtime, RuntimeTokenHttpInterceptor(token))
    heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(client))  # else a long answer would come too late
    heartbeat.start()
    try:
        message, context, _, _ = pull_task_input(client)
        reply = RecordDict({RECORD: ConfigRecord({FRAMES: _frames(desk, message)})})
        push_message(client, Message(reply, reply_to=message), context)
        push_task_output(client, context, "completed", "")
    finally:
        heartbeat.stop()
        client.close()


def _frames(desk: Desk, message: Any) -> list[bytes]:
    try:
        return [desk.answer(bytes(frame)) for frame in message.content[RECORD][FRAMES]]
    except Exception:
        return [to_bytes(message_of(Failed(FAILED)))]


def _client(runtime: str, interceptor: Any) -> Any:
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
    from flwr.supercore.runtime import RuntimeHttpClient

    return RuntimeHttpClient.from_server_address(
        server_address=runtime,
        insecure=True,  # on this machine's loopback, with a secret of mode 600
        root_certificates=None,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec"), interceptor],
    )
