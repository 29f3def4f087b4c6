"""The time of a person who is asked about requests; the test's event loop has a clock that it advances."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.episode.approval import ApprovalRequest
from agent.run.runner import run_open
from envs.core.actions import Status, Stop, Wait
from envs.core.trace_store import read_trace
from tests.agent.episode.test_request_approval import SCROLL, SCROLLS, SEND
from tests.agent.shop import Shop, config, scripted
from tests.timing import LoopClock

pytestmark = pytest.mark.browser


async def test_a_person_who_thinks_long_does_not_use_up_the_step(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the page waits too: it cannot be read before its request was sent or failed."""
    blocks = "const x = new XMLHttpRequest(); x.open('POST', '/act', false); x.send('a=1')"
    shop.front = SCROLLS.replace(SEND, f"setTimeout(() => {{ {blocks}; document.body.append('sent') }}, 700)")

    async def thinks(request: ApprovalRequest) -> bool:
        await clock.sleep(1_000)
        return True

    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    session = {"step_deadline_s": 30.0, "observe": {"timeout_s": 20.0}}
    settings = config(approve=("submit",), session=session)
    script = scripted([SCROLL, Wait(), Wait(), Stop()])
    run = await run_open(settings, "Read", shop.url, tmp_path, policy=script, approver=thinks)
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert shop.orders == ["a=1"]
    assert [step.commit.result.status for step in trace.steps if step.commit] == [Status.OK] * 3 + [Status.STOPPED]
    assert not any(step.intent.seen.note for step in trace.steps)
    assert "sent" in (run.folder / "blobs" / trace.steps[-1].intent.seen.text_blob).read_text(encoding="utf-8")
