"""Replays traces of real runs in Chromium: after a reset, on changed markup, with missing and late elements."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Download

from agent.config import ActionClass
from agent.episode.approval import ApprovalRequest
from agent.inspection.replay import Replay, ReplayOptions, Verdict, replay_trace
from agent.run.runner import run_suite, run_task
from benchmarks.markup_changes import rebuilt
from envs.browser.downloads import Downloads
from envs.core.actions import Action, AnswerDialog, Back, Click, Goto, Scroll, Status, Stop, Type
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from envs.core.trace_store import read_trace
from tests.agent.inspection.replay import orders as pages
from tests.agent.inspection.replay.orders import Orders, Rows
from tests.agent.shop import Shop, config, scripted

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]

HELP_THEN_SHIP_18 = (Click(ref=4), Back(), Click(ref=2), Stop(answer="done"))
QUICK = ReplayOptions(patience_s=0)


async def recorded(orders: Orders, out: Path, actions: tuple[Action, ...] = HELP_THEN_SHIP_18) -> Path:
    """Records a run of *actions* and clears the list of shipped orders."""
    result = await run_task("Ship order 18", orders.url, policy=scripted(actions), out=out, fsync=False)
    orders.shipped.clear()
    return out / result.run_id / result.trace


def verdicts(replay: Replay) -> list[str]:
    return [step.verdict.value for step in replay.steps]


async def test_an_unchanged_site_gives_the_same_again(orders: Orders, tmp_path: Path) -> None:
    replay = await replay_trace(await recorded(orders, tmp_path), may_act=True)
    assert verdicts(replay) == ["same"] * 4
    assert orders.shipped == ["18"]
    assert (replay.done, replay.recorded, replay.ok, replay.same_outcome) == (4, 4, True, None)
    assert not any(step.reason or step.note for step in replay.steps)


@pytest.mark.parametrize(
    "page",
    [pages.renamed, pages.reordered, pages.with_banner, pages.wrapped, pages.respelled, pages.late, pages.all_at_once],
    ids=lambda page: page.__name__,
)
async def test_a_rebuilt_page_gets_the_same_click(orders: Orders, tmp_path: Path, page: Callable[[Rows], str]) -> None:
    trace = await recorded(orders, tmp_path)
    orders.page = page
    replay = await replay_trace(trace, may_act=True)
    assert orders.shipped == ["18"]
    assert set(verdicts(replay)) <= {"same", "moved"} and replay.ok


async def test_a_missing_element_is_not_replaced_by_another(orders: Orders, tmp_path: Path) -> None:
    trace = await recorded(orders, tmp_path)
    orders.rows = [row for row in pages.ROWS if row[0] != 18]
    replay = await replay_trace(trace, QUICK, may_act=True)
    assert verdicts(replay)[:3] == ["same", "same", "missing"]
    assert orders.shipped == [] and not replay.ok
    assert replay.steps[2].status is None and "is at the recorded position" in replay.steps[2].reason


async def test_another_address_is_a_difference_and_can_end_it(orders: Orders, tmp_path: Path) -> None:
    trace = await recorded(orders, tmp_path)
    orders.moved_to = "/support"
    reported: list[int] = []
    options = ReplayOptions(on_difference="stop", patience_s=0)
    replay = await replay_trace(trace, options, may_act=True, on_step=lambda step: reported.append(step.step))
    assert verdicts(replay) == ["different"]
    assert "/support" in replay.steps[0].reason and "/help" in replay.steps[0].reason
    assert (orders.shipped, reported, replay.outcome) == ([], [1], None)


async def test_from_and_until_select_the_listed_steps(orders: Orders, tmp_path: Path) -> None:
    trace = await recorded(orders, tmp_path)
    replay = await replay_trace(trace, ReplayOptions(from_step=3, until_step=3), may_act=True)
    assert [step.step for step in replay.steps] == [3]
    assert (orders.shipped, replay.done, replay.outcome, replay.ok) == (["18"], 3, None, True)


async def test_a_live_site_needs_permission(orders: Orders, tmp_path: Path) -> None:
    trace = await recorded(orders, tmp_path)
    with pytest.raises(BadInput, match=r"--yes \(in Python may_act=True\)"):
        await replay_trace(trace)
    assert orders.shipped == []


async def test_failed_steps_are_compared_too(orders: Orders, tmp_path: Path) -> None:
    actions = (Click(ref=99), Goto(url="http://elsewhere.test/"), Stop())
    replay = await replay_trace(await recorded(orders, tmp_path, actions), may_act=True)
    assert verdicts(replay) == ["same"] * 3
    assert replay.steps[0].status is None and "named an element that was not shown" in replay.steps[0].note
    assert replay.steps[1].status is Status.BLOCKED


async def test_secrets_are_typed_again_and_stored_nowhere(
    orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIN", "hunter2222")
    orders.page = lambda _: "<form action=/help><input name=pin aria-label=Pin><button>Go</button></form>"
    typed = (Type(ref=1, text="<secret>PIN</secret>"), Click(ref=2), Stop())
    result = await run_task(
        "Log in", orders.url, policy=scripted(typed), out=tmp_path, secrets=("PIN=env:PIN",), fsync=False
    )
    trace = tmp_path / result.run_id / result.trace
    replay = await replay_trace(trace, may_act=True)
    assert verdicts(replay) == ["same"] * 3, replay.steps
    assert "hunter2222" not in replay.model_dump_json()
    with pytest.raises(BadInput, match="Playwright's trace would hold the declared secrets"):
        await replay_trace(trace, may_act=True, trace_zip=True, out=tmp_path / "zip")
    assert not (tmp_path / "zip").exists()
    monkeypatch.delenv("PIN")
    with pytest.raises(BadInput, match="PIN is not set"):
        await replay_trace(trace, may_act=True)


TASKS = ("login-user", "click-checkboxes", "email-inbox-delete")


async def test_miniwob_after_a_reset_and_rebuilt_with_playwrights_trace(tmp_path: Path) -> None:
    selection = TaskSelection("miniwob", TASKS, (0,))
    run = await run_suite(config(policy="oracle", planner="none", judge="none"), selection, tmp_path)
    moved = 0
    for episode in run.episodes:
        trace = run.folder / episode.trace
        replay = await replay_trace(trace, trace_zip=True, out=tmp_path / "again")
        assert (set(verdicts(replay)), replay.same_outcome) == ({"same"}, True)
        _assert_playwright_opens(tmp_path / "again" / "traces" / f"{episode.episode_id}.zip")
        replay = await replay_trace(trace, suite=rebuilt("miniwob"))
        assert replay.same_outcome, replay.steps
        moved += sum(step.verdict is Verdict.MOVED for step in replay.steps)
    assert moved >= len(TASKS)


def _assert_playwright_opens(path: Path) -> None:
    """The file has what Playwright's viewer reads: context, actions, and snapshots with resources."""
    with zipfile.ZipFile(path) as archive:
        lines = [json.loads(line) for line in archive.read("trace.trace").splitlines()]
        assert "trace.network" in archive.namelist()
        assert any(name.startswith("resources/") for name in archive.namelist())
    assert lines[0]["type"] == "context-options"
    kinds = {line["type"] for line in lines}
    assert {"before", "after", "frame-snapshot"} <= kinds
    assert any(line.get("method") == "mouseClick" for line in lines)


@pytest.mark.parametrize("approve", [("download",), ("all",)], ids=str)
async def test_an_approved_download_is_replayed_and_a_declined_one_is_not(
    shop: Shop, tmp_path: Path, approve: tuple[ActionClass, ...]
) -> None:
    """The script fetches the same file twice; only the first time is approved."""
    shop.front = "<title>Prices</title><a href=/file download>Prices</a>"
    asked: list[int] = []

    async def first_only(request: ApprovalRequest) -> bool:
        asked.append(request.step)
        return request.step == 1

    script = scripted((Click(ref=1), Click(ref=1), Stop()))
    settings: dict[str, Any] = {"approve": approve, "fsync": False}
    result = await run_task("Fetch", shop.url, policy=script, out=tmp_path, approver=first_only, **settings)
    trace = read_trace(result.trace_path)
    files = [step.commit is not None and len(step.commit.result.downloads) for step in trace.steps]
    assert (asked, files) == ([1, 2], [1, 0, 0])
    replay = await replay_trace(result.trace_path, may_act=True, out=tmp_path / "again")
    assert verdicts(replay) == ["same"] * 3, replay.steps
    assert [path.name for path in (tmp_path / "again" / "downloads").iterdir()] == ["prices.csv"]


async def test_a_download_that_begins_late_in_a_replay_is_kept(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next step's download was declined. On a loaded machine that of the first step began only then."""
    shop.front = "<title>Prices</title><a href=/file download>Prices</a>"

    async def first_only(request: ApprovalRequest) -> bool:
        return request.step == 1

    script = scripted((Click(ref=1), Click(ref=1), Stop()))
    settings: dict[str, Any] = {"approve": ("download",), "fsync": False}
    result = await run_task("Fetch", shop.url, policy=script, out=tmp_path, approver=first_only, **settings)
    arrived = Downloads.arrived

    def arrive_late(downloads: Downloads, download: Download) -> None:
        asyncio.get_running_loop().call_later(1, arrived, downloads, download)

    monkeypatch.setattr(Downloads, "arrived", arrive_late)
    replay = await replay_trace(result.trace_path, may_act=True, out=tmp_path / "again")
    assert verdicts(replay) == ["same"] * 3, replay.steps
    assert [path.name for path in (tmp_path / "again" / "downloads").iterdir()] == ["prices.csv"]


async def test_a_step_whose_request_was_declined_is_not_repeated_and_says_why(shop: Shop, tmp_path: Path) -> None:
    shop.front = """<title>Forum</title><div style="height: 4000px"></div><script>
        addEventListener('scroll', () => fetch('/act', {method: 'POST'}), {once: true})</script>"""
    script = scripted((Scroll(direction="down"), Stop()))
    result = await run_task("Read", shop.url, policy=script, out=tmp_path, approve=("submit",), fsync=False)
    replay = await replay_trace(result.trace_path, may_act=True)
    assert (replay.steps[0].status, replay.steps[0].verdict) == (None, Verdict.SAME) and shop.orders == []
    assert replay.steps[0].note == "not sent: in the recording, a request that it caused was declined"


async def test_dialogs_of_another_type_are_named(shop: Shop, tmp_path: Path) -> None:
    shop.front = "<title>Shop</title><button onclick=\"alert('Sold out')\">Buy</button>"
    script = scripted((Click(ref=1), AnswerDialog(accept=True), Stop()))
    result = await run_task("Buy", shop.url, policy=script, out=tmp_path, fsync=False)
    shop.front = shop.front.replace("alert", "confirm")
    replay = await replay_trace(result.trace_path, QUICK, may_act=True)
    assert replay.steps[0].verdict is Verdict.DIFFERENT
    assert replay.steps[0].reason == "dialogs opened: confirm; recorded: alert"
