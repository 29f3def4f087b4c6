"""Runs killed with SIGKILL inside a batch: no action is sent twice, none is lost, and no batch is continued blindly."""

from __future__ import annotations

import multiprocessing
import random
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from envs.core.trace_store import Step, Trace, read_trace
from tests.agent.run.killable_batches import Items, forked
from tests.agent.run.test_killed import browsers_of, lines_in
from tests.timing import HANG_S, until

pytestmark = pytest.mark.browser

FORKS = multiprocessing.get_context("forkserver")


@pytest.mark.parametrize(
    ("kills", "items"), [(2, 12), pytest.param(20, 80, marks=[pytest.mark.slow, pytest.mark.heavy])]
)
def test_killed_inside_batches_every_action_is_done_once(tmp_path: Path, home: Path, kills: int, items: int) -> None:
    chance = random.Random(3)
    shop = Items(items)
    FORKS.set_forkserver_preload(["tests.agent.run.killable_batches"])
    try:
        for number in range(kills + 1):
            before = lines_in(tmp_path)
            command = "start" if number == 0 else "resume"
            child = FORKS.Process(target=forked, args=(command, tmp_path, home, shop.url))
            child.start()
            if number == kills:
                child.join(HANG_S)
                assert child.exitcode == 0
                break
            target = before + chance.randint(3, 7)  # past the lines of the start or the resume, into a batch
            assert until(lambda: not child.is_alive() or lines_in(tmp_path) >= target)  # noqa: B023
            Event().wait(chance.random() * 0.05)
            assert child.is_alive(), "the run ended before it could be killed: give it more items"
            child.kill()
            child.join(HANG_S)
            assert until(lambda: not browsers_of(home)), "a browser outlived its run"
    finally:
        shop.close()
    (path,) = (tmp_path / "r" / "episodes").glob("*.jsonl")
    trace = read_trace(path)
    assert sorted(shop.orders) == sorted(f"who={item}" for item in range(items)), "each item was ordered once"
    assert trace.footer is not None and trace.footer.answer == "ordered"
    numbers = [step.intent.step for step in trace.steps]
    assert numbers == list(range(1, len(numbers) + 1)), "a step has one intent: nothing was sent again"
    assert len(cut_off(trace)) >= max(1, kills // 2), "most kills came inside a batch"


def cut_off(trace: Trace) -> list[Step]:
    """Steps inside a batch after which another answer begins. Within a batch one action follows the other."""
    found: list[Step] = []
    for step, following in pairwise(trace.steps):
        batch, after = step.intent.batch, following.intent.batch
        if batch is None or batch.place == batch.size:
            continue
        if after is not None and after.place > 1:
            assert step.commit is not None and (after.place, after.size) == (batch.place + 1, batch.size)
        else:
            found.append(step)
    return found
