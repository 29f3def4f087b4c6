"""A run with files that a power cut damaged resumes, and only its owner can read its files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.episode.approval import ApprovalRequest
from agent.run.runner import resume, run_open
from envs.browser.live_session import STORAGE_FILE, TABS_FILE
from envs.core.run_lock import RunLock, RunLocked
from envs.core.trace_store import read_trace
from tests.agent.episode.test_run_episode import ORDER
from tests.agent.shop import Shop, config, scripted

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


async def cut_run(shop: Shop, out: Path) -> Path:
    """Cancels a run during the approval of its second step; the first is committed."""

    async def leaves(_: ApprovalRequest) -> bool:
        running.cancel()
        await asyncio.Event().wait()
        return True

    settings = config(approve=("submit",))
    run = run_open(settings, "Order", shop.url, out, run_id="r", policy=scripted(ORDER), approver=leaves)
    running = asyncio.ensure_future(run)
    with pytest.raises(asyncio.CancelledError):
        await running
    return out / "r"


async def agrees(_: ApprovalRequest) -> bool:
    return True


AGAIN = (ORDER[0], ORDER[0], ORDER[1], ORDER[2])
"""A reopened page loses a form that was filled but not sent."""


async def resumed(folder: Path, shop: Shop) -> list[str]:
    """Resumes the run and returns the details of its `resumed` events."""
    result = await resume(folder, policy=scripted(AGAIN), approver=agrees)
    assert result.complete and result.episodes[0].ended_by == "stop"
    assert shop.orders == ["who=bob"]
    events = read_trace(folder / result.episodes[0].trace).events
    return [event.detail for event in events if event.name == "resumed"]


@pytest.mark.parametrize("name", [TABS_FILE, STORAGE_FILE])
@pytest.mark.parametrize("text", ["", "{", '{"urls": ["http'], ids=["empty", "brace", "cut"])
async def test_a_torn_state_file_is_no_refusal(shop: Shop, tmp_path: Path, name: str, text: str) -> None:
    folder = await cut_run(shop, tmp_path)
    (path,) = folder.glob(f"state/*/{name}")
    path.write_text(text)
    assert len(await resumed(folder, shop)) == 1


async def test_a_run_folder_is_its_owners_alone(shop: Shop, tmp_path: Path) -> None:
    run = await run_open(config(), "Order", shop.url, tmp_path, policy=scripted(ORDER))
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    assert (run.folder.stat().st_mode & 0o777, len(files) > 4) == (0o700, True)
    assert {path.name: oct(path.stat().st_mode & 0o077) for path in files if path.stat().st_mode & 0o077} == {}


async def test_a_file_that_vanishes_while_a_folder_is_listed_is_no_special_file(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symptom: instead of RunLocked, the process that writes a blob made resume refuse the blob's temporary file."""
    folder = await cut_run(shop, tmp_path)
    walk = os.walk

    def with_vanished(top: Path, *, followlinks: bool) -> Iterator[tuple[str, list[str], list[str]]]:
        for where, folders, files in walk(top, followlinks=followlinks):
            yield where, folders, [*files, "blob.part-1"]

    monkeypatch.setattr(os, "walk", with_vanished)
    with RunLock(folder), pytest.raises(RunLocked, match="is in use by"):
        await resume(folder, policy=scripted(AGAIN), approver=agrees)
