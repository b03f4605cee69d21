"""Talking to a server in tests."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data.benchmark import Benchmark
from limbeck.serve.server import Server


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> Answer:
    """One request, sent as it stands: nothing tidies the path."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def evaluation_of(release: Path, **changes: Any) -> dict[str, Any]:
    stated = json.loads((release / "certificate.json").read_text())
    return {
        "release": str(release), "test": "digits:test", "preset": "cpu", "labels": "hard", "repeats": 1,
        "benchmarks": {"test": Benchmark("digits", "test").to_dict()},
        "accuracy": {"mlp": {"mean": 61.25, "std": 0.5, "runs": [61.25]}},
        **{name: stated[name] for name in ("method", "epsilon", "records")}, **changes,
    }  # fmt: skip
