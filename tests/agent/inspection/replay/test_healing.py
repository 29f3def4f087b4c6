"""A run that heals repeats a trace without a model, and asks a policy only where a step cannot be repeated."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from agent.episode.policy import Turn
from agent.inspection.replay import heal_trace
from agent.inspection.replay.retracing import replaced
from agent.progress import Event, StepDone
from agent.results import RunResult
from agent.run.runner import resume, run_task
from envs.core.actions import Action, Click, Goto, Stop, Type, UseTool
from envs.core.errors import BadInput
from envs.core.trace_store import read_trace
from tests.agent.inspection.replay import orders as pages
from tests.agent.inspection.replay.orders import Orders
from tests.agent.shop import Shop, scripted

TYPED = (Type(ref=1, text="Ann"), Click(ref=2), Stop())


class Rescue:
    """A policy that records the steps at which it was asked, and gives *actions*."""

    def __init__(self, *actions: Action) -> None:
        self.actions = list(actions)
        self.asked: list[int] = []
        self.instructions: set[str] = set()

    def __call__(self, turn: Turn) -> Action:
        self.asked.append(turn.step)
        self.instructions.add(turn.view.instruction)
        return self.actions[len(self.asked) - 1]


async def recorded(url: str, out: Path, script: tuple[Action, ...], instruction: str = "Order for Ann") -> Path:
    result = await run_task(instruction, url, policy=scripted(script), out=out, fsync=False)
    return out / result.run_id / result.trace


async def healed(path: Path, rescue: Rescue, out: Path, texts: dict[str, str] | None = None, **more: Any) -> RunResult:
    return await heal_trace(path, scripted(rescue), texts, out=out, may_act=True, **more)


def kinds(run: RunResult) -> list[str]:
    return [step.intent.action.kind for step in read_trace(run.folder / run.episodes[0].trace).steps]


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_page_that_is_as_before_needs_no_model(shop: Shop, tmp_path: Path) -> None:
    path, rescue = await recorded(shop.url, tmp_path / "parent", TYPED), Rescue()
    run = await healed(path, rescue, tmp_path / "healed")
    assert (rescue.asked, kinds(run), run.episodes[0].ended_by) == ([], ["type", "click", "stop"], "stop")
    assert shop.orders == ["who=Ann", "who=Ann"]


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_an_answer_is_given_by_the_policy(shop: Shop, tmp_path: Path) -> None:
    script = (*TYPED[:2], Stop(answer="order 1"))
    path, rescue = await recorded(shop.url, tmp_path / "parent", script), Rescue(Stop(answer="order 2"))
    run = await healed(path, rescue, tmp_path / "healed")
    assert (rescue.asked, run.episodes[0].answer) == ([3], "order 2")


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_other_texts_are_typed_and_asked_for(shop: Shop, tmp_path: Path) -> None:
    path, rescue = await recorded(shop.url, tmp_path / "parent", TYPED), Rescue(Stop())
    run = await healed(path, rescue, tmp_path / "healed", {"Ann": "Bob"})
    assert shop.orders == ["who=Ann", "who=Bob"] and rescue.asked == []
    assert read_trace(run.folder / run.episodes[0].trace).header.instruction == "Order for Bob"


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_the_policy_continues_where_an_element_is_missing(orders: Orders, tmp_path: Path) -> None:
    path = await recorded(orders.url, tmp_path / "parent", (Click(ref=4), Goto(url=orders.url), Click(ref=1), Stop()))
    orders.shipped.clear()
    orders.page = lambda rows: pages.plain(rows).replace("Help centre", "Questions")
    rescue = Rescue(Click(ref=1), Stop(answer="healed"))
    run = await healed(path, rescue, tmp_path / "healed")
    assert (orders.shipped, run.episodes[0].answer) == (["17"], "healed")
    assert kinds(run) == ["wait"] * 4 + ["click", "stop"] and rescue.asked == [5, 6]


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_the_policy_continues_where_a_step_leads_elsewhere(orders: Orders, tmp_path: Path) -> None:
    path = await recorded(orders.url, tmp_path / "parent", (Click(ref=4), Goto(url=orders.url), Click(ref=1), Stop()))
    orders.shipped.clear()
    orders.moved_to = "/support"
    rescue = Rescue(Goto(url=orders.url), Click(ref=1), Stop(answer="healed"))
    run = await healed(path, rescue, tmp_path / "healed")
    assert (orders.shipped, run.episodes[0].answer, rescue.asked) == (["17"], "healed", [2, 3, 4])


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_step_whose_row_has_a_replaced_text_is_left_to_the_policy(orders: Orders, tmp_path: Path) -> None:
    script = (Click(ref=4), Goto(url=orders.url), Click(ref=1), Stop())
    path = await recorded(orders.url, tmp_path / "parent", script, "Ship order 17")
    orders.shipped.clear()
    rescue = Rescue(Click(ref=3), Stop())
    run = await healed(path, rescue, tmp_path / "healed", {"17": "19"})
    statuses = [step.commit and step.commit.result for step in read_trace(run.folder / run.episodes[0].trace).steps]
    assert (orders.shipped, rescue.asked, rescue.instructions) == (["19"], [3, 4], {"Ship order 19"}), statuses


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        # The resume opens the page again, whose field is empty.
        pytest.param(1, [2, 3, 4], id="after typing"),
        pytest.param(2, [], id="after the order"),
    ],
)
async def test_an_interrupted_run_that_heals_continues(shop: Shop, tmp_path: Path, kept: int, asked: list[int]) -> None:
    path = await recorded(shop.url, tmp_path / "parent", TYPED)
    rescue = Rescue(Type(ref=1, text="Bob"), Click(ref=2), Stop())

    def interrupt(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == kept:
            signal.raise_signal(signal.SIGTERM)

    run = await healed(path, rescue, tmp_path / "healed", {"Ann": "Bob"}, listeners=(interrupt,))
    assert not run.complete
    again = await resume(run.folder, policy=scripted(rescue))
    assert again.episodes[0].ended_by == "stop" and shop.orders == ["who=Ann", "who=Bob"]
    assert rescue.asked == asked


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_from_the_call_of_a_tool_on_the_policy_decides(shop: Shop, tmp_path: Path) -> None:
    """Its result, such as a one-time code, is another one today."""

    def code() -> str:
        """Returns a code."""
        return "4711"

    script = [UseTool(tool="code"), Type(ref=1, text="4711"), Click(ref=2), Stop()]
    out = tmp_path / "parent"
    result = await run_task("Order", shop.url, policy=scripted(script), out=out, fsync=False, tools=[code])
    rescue = Rescue(Type(ref=1, text="4712"), Click(ref=2), Stop())
    await healed(out / result.run_id / result.trace, rescue, tmp_path / "healed", tools=[])
    assert (shop.orders, rescue.asked) == (["who=4711", "who=4712"], [1, 2, 3])


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_text_that_is_nowhere_is_refused(shop: Shop, tmp_path: Path) -> None:
    path = await recorded(shop.url, tmp_path / "parent", TYPED)
    with pytest.raises(BadInput, match="'Zoe' is in no text of the trace"):
        await healed(path, Rescue(), tmp_path / "healed", {"Zoe": "Bob"})


def test_texts_are_replaced_once_and_the_longer_first() -> None:
    assert replaced("Ann and Anna (a.b)", (("Ann", "Bob"), ("Anna", "Ann"), ("a.b", "c"))) == "Bob and Ann (c)"
