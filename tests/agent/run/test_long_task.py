"""A fact of step 3 is needed at step 38: with notes the task is solved, without it is not, and a resume keeps them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.run.runner import resume, run_open
from envs.core.trace_store import read_trace
from tests.agent.run.corridor import CODE, FACT, GOAL, Corridor, reader, settings
from tests.timing import HANG_S

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240), pytest.mark.usefixtures("shared_chromium")]

ROOT = Path(__file__).parents[3]


def start(folder: Path, url: str, home: Path, dies_at: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tests.agent.run.corridor", str(folder), url, str(dies_at)]
    return subprocess.Popen(words, cwd=ROOT, env={**os.environ, "TMPDIR": str(home)})


@pytest.mark.parametrize(("max_notes", "sent"), [(20, CODE), (0, "unknown")], ids=["with notes", "without"])
async def test_a_fact_of_an_early_page_is_known_at_the_end(tmp_path: Path, max_notes: int, sent: str) -> None:
    corridor = Corridor()
    try:
        run = await run_open(settings(max_notes), GOAL, corridor.url, tmp_path, policy=reader())
    finally:
        corridor.close()
    (result,) = run.episodes
    assert (corridor.sent, result.totals.steps) == ([sent], 40)
    assert result.answer == ("accepted" if sent == CODE else "refused")
    trace = read_trace(run.folder / result.trace)
    books = {step.intent.step: step.intent.notebook for step in trace.steps if step.intent.notebook is not None}
    kept = {step: [note.text for note in book.notes] for step, book in books.items()}
    assert kept == ({FACT: [f"the code is {CODE}"]} if max_notes else {})


@pytest.mark.slow
@pytest.mark.parametrize("moment", [pytest.param("before step 20", marks=pytest.mark.heavy), "while step 3 is sent"])
async def test_notes_survive_a_kill(tmp_path: Path, home: Path, moment: str) -> None:
    children: list[subprocess.Popen[bytes]] = []
    in_flight = moment != "before step 20"

    def requested(number: int) -> None:
        if in_flight and number == FACT + 1 and children[0].poll() is None:
            children[0].send_signal(signal.SIGKILL)
            children[0].wait()

    corridor = Corridor(requested)
    try:
        children.append(start(tmp_path, corridor.url, home, 0 if in_flight else 20))
        assert await asyncio.to_thread(children[0].wait, HANG_S) == -signal.SIGKILL
        result = await resume(tmp_path / "r", policy=reader())
    finally:
        corridor.close()
    (episode,) = result.episodes
    assert (corridor.sent, episode.answer) == ([CODE], "accepted")
    trace = read_trace(result.folder / episode.trace)
    assert "resumed" in [event.name for event in trace.events]
    assert [step.commit is None for step in trace.steps].count(True) == in_flight
