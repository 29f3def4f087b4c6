"""Runs killed with SIGKILL resume to the same result. No committed action is repeated and no process is left."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Event

import psutil
import pytest

from agent.episode.approval import ApprovalRequest
from agent.episode.policy import Turn
from agent.run.oracle import miniwob_oracle
from agent.run.runner import resume, run_open, run_suite
from envs.browser.chromium import Chromium
from envs.browser.driver_process import drivers
from envs.core.actions import Action, Click, Goto, Stop
from envs.core.errors import ResetFailed
from envs.core.tasks import EpisodeStart, TaskSelection
from envs.core.trace import Intent
from envs.core.trace_chain import check_chain
from envs.core.trace_store import BlobStore, Trace, TraceWriter, iter_lines, read_trace
from envs.suites.miniwob.environment import MiniwobEnvironment
from tests.agent.run.killable import ORDER, SEEDS, forked, selection
from tests.agent.shop import Shop, config, scripted
from tests.timing import HANG_S, until

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[3]
FORKS = multiprocessing.get_context("forkserver")


def start(command: str, folder: Path, home: Path, *rest: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tests.agent.run.killable", command, str(folder), "r", *rest]
    return subprocess.Popen(words, cwd=ROOT, env={**os.environ, "TMPDIR": str(home)})


def fork(command: str, folder: Path, home: Path, seeds: int = SEEDS) -> ForkServerProcess:
    FORKS.set_forkserver_preload(["tests.agent.run.killable"])
    child = FORKS.Process(target=forked, args=(command, folder, home, seeds))
    child.start()
    return child


def browsers_of(home: Path) -> list[int]:
    """Lists live processes with a file below *home* in their arguments or environment."""
    processes: list[int] = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
            alive = process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if alive and any(str(home) in word for word in words):
            processes.append(process.pid)
    return processes


def drivers_of(home: Path) -> set[int]:
    """The drivers of this process that started the browsers of *home*; tests share others."""
    return {psutil.Process(pid).ppid() for pid in browsers_of(home)} & set(drivers())


def lines_in(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (folder / "r" / "episodes").glob("*.jsonl"))


def kill(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGKILL)
    child.wait(HANG_S)


def traces(run: Path) -> Iterator[Trace]:
    for path in sorted((run / "episodes").glob("*.jsonl")):
        yield read_trace(path)


def committed(trace: Trace) -> list[Action]:
    return [step.intent.action for step in trace.steps if step.commit is not None]


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("times", "seeds"), [(4, SEEDS), pytest.param(79, 50, marks=pytest.mark.heavy)])
def test_killed_many_times_and_resumed_to_the_same_end(tmp_path: Path, home: Path, times: int, seeds: int) -> None:
    chance = random.Random(7)
    killed = tmp_path / "killed"
    killed.mkdir()
    kills = 0
    while True:
        fresh = not (killed / "r" / "run.json").exists()
        before = lines_in(killed)
        child = fork("start" if fresh else "resume", killed, home, seeds)
        if kills == times:
            child.join(HANG_S)
            assert child.exitcode == 0
            break
        target = before + chance.randint(0, 3)
        assert until(lambda: not child.is_alive() or lines_in(killed) >= target)  # noqa: B023
        Event().wait(chance.random() * 0.05)  # not only right after a line was written
        assert child.is_alive(), "the run ended before it could be killed: give it more episodes"
        child.kill()
        child.join(HANG_S)
        kills += 1
        assert until(lambda: not browsers_of(home)), "a browser outlived its run"
    uninterrupted = asyncio.run(run_suite(config(workers=2), selection(seeds), tmp_path / "whole", run_id="r"))
    outcomes = {trace.header.episode_id: trace.footer and trace.footer.outcome for trace in traces(killed / "r")}
    assert outcomes == {episode.episode_id: episode.outcome for episode in uninterrupted.episodes}
    for trace, reference in zip(traces(killed / "r"), traces(uninterrupted.folder), strict=True):
        assert committed(trace) == committed(reference)
        assert max(Counter(step.intent.step for step in trace.steps if step.commit).values()) == 1
    seals = [check_chain(path) for path in (killed / "r" / "episodes").glob("*.jsonl")]
    assert len(seals) == len(outcomes) and all(seal.own and seal.edited is None for seal in seals)
    assert until(lambda: not browsers_of(home))


async def test_an_order_cut_off_in_flight_is_never_sent_again_blindly(shop: Shop, tmp_path: Path, home: Path) -> None:
    shop.slow_order.clear()
    child = start("start", tmp_path, home, shop.url)
    try:
        assert await asyncio.to_thread(shop.order_came.wait, HANG_S)
    finally:
        kill(child)
    shop.slow_order.set()
    turns: list[Turn] = []

    def look_first(turn: Turn) -> Action:
        turns.append(turn)
        return Stop(answer="checked")

    result = await resume(tmp_path / "r", policy=scripted(look_first))
    assert shop.orders == ["who=bob"]
    (problem,) = turns[0].view.problems
    assert "may or may not have happened" in problem and 'button "Buy"' in problem
    assert turns[0].step == 3, "the uncertain action counts as a step"
    trace = read_trace(tmp_path / "r" / result.episodes[0].trace)
    assert [event.name for event in trace.events] == ["uncertain", "resumed"]
    assert trace.steps[1].commit is None
    assert result.episodes[0].answer == "checked"


async def test_the_result_of_the_last_action_is_shown_after_a_resume(shop: Shop, tmp_path: Path) -> None:
    shop.front = "<button onclick=\"alert('Out of stock')\">Buy</button>"
    turns: list[Turn] = []

    def cut_off(turn: Turn) -> Action:
        if turn.step == 2:
            turns.append(turn)
            running.cancel()
        return Click(ref=1)

    def stop(turn: Turn) -> Action:
        turns.append(turn)
        return Stop()

    running = asyncio.ensure_future(run_open(config(), "Buy", shop.url, tmp_path, run_id="r", policy=scripted(cut_off)))
    with pytest.raises(asyncio.CancelledError):
        await running
    await resume(tmp_path / "r", policy=scripted(stop))
    before, after = (turn.view.last for turn in turns)
    assert before is not None and [dialog.message for dialog in before.dialogs] == ["Out of stock"]
    assert after == before


async def test_a_replayed_world_voids_the_open_intent_and_chooses_again(tmp_path: Path) -> None:
    """The page was lost with the browser: the step is chosen again, and the trace can be read."""

    def cut_off(turn: Turn) -> Action:
        if turn.step == 2:
            running.cancel()
        return Click(ref=1)

    selection = TaskSelection("miniwob", ("click-checkboxes",), (0,))
    running = asyncio.ensure_future(run_suite(config(), selection, tmp_path, run_id="r", policy=scripted(cut_off)))
    with pytest.raises(asyncio.CancelledError):
        await running
    path = tmp_path / "r" / "episodes" / "click-checkboxes-0-a1.jsonl"
    forged = next(line for line in iter_lines(path) if isinstance(line, Intent)).model_copy(update={"step": 2})
    with TraceWriter(path, BlobStore(tmp_path / "r" / "blobs")) as writer:
        writer.append(forged)  # as if killed while step 2 was sent
    result = await resume(tmp_path / "r", policy=scripted(lambda turn: Stop()))
    trace = read_trace(path)
    assert [event.name for event in trace.events] == ["void", "resumed"]
    assert [(step.intent.step, step.commit is not None) for step in trace.steps] == [(1, True), (2, False), (2, True)]
    assert result.complete


async def test_usage_is_reported_if_an_environment_cannot_be_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object) -> EpisodeStart:
        raise ResetFailed("the server is gone")

    selection = TaskSelection("miniwob", ("login-user",), (0,))
    run = await run_suite(config(policy="oracle"), selection, tmp_path, run_id="r")
    path = run.folder / run.episodes[0].trace
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    monkeypatch.setattr(MiniwobEnvironment, "restore_state", gone)
    (again,) = (await resume(run.folder)).episodes
    assert (again.outcome, again.totals.steps) == ("broken", run.episodes[0].totals.steps)
    assert again.totals.seconds > 0


async def test_a_site_that_is_away_at_the_resume_loses_no_episode(shop: Shop, tmp_path: Path) -> None:
    def cut_off(turn: Turn) -> Action:
        if turn.step == 2:
            running.cancel()
        return Goto(url=f"{shop.url}about")

    running = asyncio.ensure_future(
        run_open(config(), "Read", shop.url, tmp_path, run_id="r", policy=scripted(cut_off))
    )
    with pytest.raises(asyncio.CancelledError):
        await running
    policy, page = scripted(lambda turn: Stop(answer=f"step {turn.step}")), shop.page

    def away(path: str) -> str:
        raise ConnectionError

    shop.page = away
    for _ in range(2):
        (lost,) = (await resume(tmp_path / "r", policy=policy)).episodes
        assert (lost.outcome, lost.resumable, lost.totals.steps) == ("broken", True, 1)
        assert lost.error is not None and "could not be opened" in lost.error
    shop.page = page
    (again,) = (await resume(tmp_path / "r", policy=policy)).episodes
    assert (again.outcome, again.answer, again.totals.steps) == ("unjudged", "step 2", 2)
    trace = read_trace(again.trace_path)
    assert [event.name for event in trace.events] == ["not_resumed", "resumed"]


async def test_a_finished_run_is_only_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_browser(_: Chromium) -> None:
        raise AssertionError("a finished run needs no browser")

    selection = TaskSelection("miniwob", ("click-test",), (0,))
    run = await run_suite(config(), selection, tmp_path, run_id="r")
    before = (run.folder / run.episodes[0].trace).read_bytes()
    monkeypatch.setattr(Chromium, "start", no_browser)
    again = await resume(run.folder)
    assert again.complete
    assert again.episodes == run.episodes
    assert (run.folder / run.episodes[0].trace).read_bytes() == before


def test_ctrl_c_ends_at_a_step_boundary_and_can_be_resumed(shop: Shop, tmp_path: Path, home: Path) -> None:
    shop.slow_order.clear()
    child = start("start", tmp_path, home, shop.url)
    assert shop.order_came.wait(HANG_S)
    child.send_signal(signal.SIGINT)
    shop.slow_order.set()
    assert child.wait(30) == 1, "an interrupted run says that it is not complete"
    assert [step.commit is not None for trace in traces(tmp_path / "r") for step in trace.steps] == [True, True]
    assert until(lambda: not browsers_of(home))
    result = asyncio.run(resume(tmp_path / "r", policy=scripted(lambda turn: Stop(answer=f"step {turn.step}"))))
    assert result.complete
    assert result.episodes[0].answer == "step 3"
    assert shop.orders == ["who=bob"]


@pytest.mark.parametrize("program", ["browser", "driver"])
async def test_a_browser_that_dies_is_replaced_and_the_episode_continues(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    killed: list[int] = []

    def kill_the_browser_once(turn: Turn) -> Action:
        if turn.step == 2 and not killed:
            killed.extend(browsers_of(home) if program == "browser" else drivers_of(home))
            for pid in killed:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return miniwob_oracle(turn)

    selection = TaskSelection("miniwob", ("login-user", "click-test"), (0,))
    run = await run_suite(config(), selection, tmp_path, policy=scripted(kill_the_browser_once))
    assert killed
    assert [episode.outcome for episode in run.episodes] == ["success", "success"]
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert "resumed" in [event.name for event in trace.events]


async def test_a_pending_approval_is_requested_again_after_a_resume(shop: Shop, tmp_path: Path) -> None:
    steps_asked: list[int] = []

    async def leaves(request: ApprovalRequest) -> bool:
        steps_asked.append(request.step)
        running.cancel()
        await asyncio.Event().wait()
        return True

    async def agrees(request: ApprovalRequest) -> bool:
        steps_asked.append(request.step)
        return True

    settings, policy = config(approve=("submit",)), scripted(ORDER)
    run = run_open(settings, "Order", shop.url, tmp_path, run_id="r", policy=policy, approver=leaves)
    running = asyncio.ensure_future(run)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shop.orders == []
    # A form that was filled but not sent is not kept by a reopened page, so the script fills it again.
    again = [ORDER[0], ORDER[0], ORDER[1], ORDER[2]]
    result = await resume(tmp_path / "r", policy=scripted(again), approver=agrees)
    assert steps_asked == [2, 3]
    assert shop.orders == ["who=bob"]
    assert result.complete
