"""The group of real processes: exact sums, messages in order, and no waiting for the dead."""

from __future__ import annotations

import json

import pytest
import torch

from limbeck.errors import RankLost
from limbeck.vault.process.wire import Message
from limbeck.vault.sharded.group import _room, decoded, encoded
from rank_processes import ends, started

SCRIPT = """
import json, os, signal, sys, time
import numpy as np, torch
from limbeck.errors import RankLost
from limbeck.vault.process.wire import Message
from limbeck.vault.sharded.group import TorchGroup
group = TorchGroup.join(20)
large = np.array([2**62 - 1, -5, 3], dtype=np.int64) * (group.rank + 1) // 4
if group.rank:
    heard = group.hear()
    group.reply(Message("back", {"text": heard.values["text"] + str(group.rank)}, heard.tensors))
    group.add_up(large)
    group.hear()
    os.kill(os.getpid(), signal.SIGKILL)
group.tell(Message("there", {"text": "x"}, (torch.arange(5), torch.rand(2, 0))))
replies = group.replies()
found = {"texts": [reply.values["text"] for reply in replies], "shapes": [list(t.shape) for t in replies[0].tensors],
    "sum": group.add_up(large).tolist(), "said": group.said}
began = time.monotonic()
group.tell(Message("die", {}))
try:
    group.add_up(large)
except RankLost as error:
    found["lost"] = error.message
print(json.dumps({**found, "seconds": time.monotonic() - began}))
os._exit(0)
"""


def test_real_processes_add_up_exactly_and_one_that_dies_is_noticed() -> None:
    with started(2, "-c", SCRIPT) as children:
        (code, out, err), (other, _, _) = ends(children)
    assert code == 0 and other == -9, err
    found = json.loads(out)
    parts = [[value * (rank + 1) // 4 for value in (2**62 - 1, -5, 3)] for rank in range(2)]
    assert found["sum"] == [sum(pair) for pair in zip(*parts, strict=True)]
    assert found["texts"] == ["x1"] and found["shapes"] == [[5], [2, 0]]
    assert found["seconds"] < 30 and "answer in time" in found["lost"]
    assert 100 < found["said"] < 1000


@pytest.mark.parametrize("size", [0, -1, 2**31, 2**62])
def test_a_message_is_no_larger_than_one_may_be(size: int) -> None:
    with pytest.raises(RankLost):
        _room(torch.tensor([size]))


def test_what_is_cut_or_strange_is_refused() -> None:
    content = encoded(Message("there", {"a": 1}, (torch.arange(3),)))
    assert decoded(content).values == {"a": 1}
    for strange in (content[:-1], content[:5], torch.zeros(40, dtype=torch.uint8)):
        with pytest.raises(RankLost):
            decoded(strange)


WAITING = """
import os, time
from limbeck.vault.process.wire import Message
from limbeck.vault.sharded.group import TorchGroup
group = TorchGroup.join(6)
if group.rank:
    group.reply(group.hear())
else:
    time.sleep(15)  # a method at work, for longer than a rank may be silent
    group.tell(Message("there", {}))
    print(group.replies()[0].kind)
group.leave()
"""


@pytest.mark.slow
def test_ranks_wait_for_a_method_that_works_for_long() -> None:
    with started(2, "-c", WAITING) as children:
        (code, out, err), (other, _, other_err) = ends(children)
    assert (code, out, other) == (0, "there\n", 0), err + other_err
