"""Workers of a local Ray cluster run MiniWoB++; one is killed during an episode."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from agent.config import RunConfig
from agent.run.run_store import RunFolder
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef, TaskSelection
from envs.core.trace_store import has_header
from tests.timing import HANG_S, until_async
from training.rollouts.pool import split_selection
from training.rollouts.ray_pool import RayPool, Shard, record_death

TASKS = ("click-button", "enter-text", "click-checkboxes", "login-user")
CONFIG = RunConfig(policy="embedded", workers=1)


def test_shards_hold_every_instance_once_and_in_order() -> None:
    selection = TaskSelection("miniwob", TASKS, (0, 1, 2))
    parts = split_selection(selection, 5)
    assert [len(part.refs()) for part in parts] == [5, 5, 2]
    assert tuple(ref for part in parts for ref in part.refs()) == selection.refs()
    with pytest.raises(BadInput, match="empty"):
        split_selection(TaskSelection("miniwob"), 5)


def _playing(out: Path) -> int | None:
    """The process that runs an episode below *out*; None without one."""
    for trace in out.glob("*/episodes/*.jsonl"):
        owner = (trace.parent.parent / "lease").read_text()
        if has_header(trace) and owner:
            return int(json.loads(owner)["pid"])
    return None


async def _begun(out: Path) -> int:
    """The same process once it plays; it writes the trace, so no listener of this process is called."""
    pids: list[int] = []

    def plays() -> bool:
        pids.extend(pid for pid in [_playing(out)] if pid is not None)
        return bool(pids)

    assert await until_async(plays)
    return pids[0]


@pytest.mark.browser
@pytest.mark.heavy
async def test_a_killed_worker_is_replaced_and_every_episode_ends(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    selection = TaskSelection("miniwob", TASKS, (0, 1))
    async with RayPool(2, shard_size=4) as pool:
        playing = asyncio.create_task(pool.play(CONFIG, selection, tmp_path))
        os.kill(await _begun(tmp_path), signal.SIGKILL)
        played = await asyncio.wait_for(playing, HANG_S)
        with pytest.raises(BadInput, match="did you mean"):
            await pool.play(CONFIG, TaskSelection("miniwob", ("click-buton",), (0,)), tmp_path)
    assert played.workers_lost == 1
    assert played.complete
    assert Counter(episode.task for episode in played.episodes) == Counter(selection.refs()), "each once"
    assert [episode.outcome for episode in played.episodes].count("broken") == 0
    assert len(played.runs) == 2


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent.progress import EpisodeStarted
from agent.run.runner import resume, run_suite
from agent.run.run_store import RunFolder
from agent.config import RunConfig
from envs.core.tasks import TaskSelection
def die(event):
    if isinstance(event, EpisodeStarted) and "enter-text" in event.episode_id:
        os.kill(os.getpid(), signal.SIGKILL)
out = Path(sys.argv[1])
if (out / "r").exists():
    asyncio.run(resume(out / "r", [die]))
else:
    selection = TaskSelection("miniwob", ("enter-text", "click-button"), (0,))
    asyncio.run(run_suite(RunConfig(policy="embedded", workers=1), selection, out, [die], run_id="r"))
"""


@pytest.mark.browser
@pytest.mark.heavy
def test_an_episode_that_kills_two_workers_is_broken_and_the_rest_is_played(tmp_path: Path) -> None:
    selection = TaskSelection("miniwob", ("enter-text", "click-button"), (0,))
    shard = Shard(CONFIG, selection, tmp_path, "r")
    deaths: Counter[tuple[str, str]] = Counter()
    exits: list[int] = []
    again = True
    while again:
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=HANG_S, check=False)
        exits.append(done.returncode)
        again = done.returncode != 0 and record_death(shard, deaths)
    assert exits == [-signal.SIGKILL, -signal.SIGKILL, 0]
    folder = RunFolder(tmp_path / "r")
    results = folder.finished(folder.read_manifest().jobs())
    outcomes = {job.task.name: result for job, result in results.items()}
    assert outcomes["enter-text"].outcome == "broken"
    assert "2 workers died" in (outcomes["enter-text"].error or "")
    assert outcomes["click-button"].outcome == "success"


def test_a_shard_whose_workers_die_before_anything_begins_is_given_up(tmp_path: Path) -> None:
    shard = Shard(CONFIG, TaskSelection("miniwob", picked=(TaskRef(suite="miniwob", name="x", seed=0),)), tmp_path, "r")
    deaths: Counter[tuple[str, str]] = Counter()
    assert record_death(shard, deaths)
    assert not record_death(shard, deaths)
