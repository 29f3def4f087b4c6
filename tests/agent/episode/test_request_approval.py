"""Requests that a step sends without approval, through the whole agent: question, answer, trace, footer, exit code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent.episode.approval import NOBODY, ApprovalRequest
from agent.run.runner import resume, run_open
from envs.core.actions import Action, AnswerDialog, Click, Scroll, Status, Stop, Type, Wait
from envs.core.trace_store import Trace, read_trace
from tests.agent.cli.test_runs import STOP, mira_run
from tests.agent.shop import Shop, config, scripted

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]

SEND = "fetch('/act', {method: 'POST', body: new URLSearchParams({lock: 1, topic: 'a b'})})"
SCROLLS = f"""<!doctype html><title>Forum</title><div style="height: 4000px"></div><script>
addEventListener('scroll', () => {SEND}, {{once: true}})</script>"""
SCROLL = Scroll(direction="down")


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    shop.front = SCROLLS
    yield shop
    shop.close()


class Person:
    def __init__(self, *answers: bool | None) -> None:
        self._answers = answers
        self.questions: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> bool | None:
        self.questions.append(request)
        return self._answers[min(len(self.questions), len(self._answers)) - 1]


async def traced(shop: Shop, folder: Path, script: Sequence[Action], person: Person, **settings: object) -> Trace:
    run = await run_open(
        config(approve=("submit",), **settings),
        "Read",
        shop.url,
        folder,
        policy=scripted(list(script)),
        approver=person,
    )
    return read_trace(run.folder / run.episodes[0].trace)


def events(trace: Trace) -> list[tuple[int, str, str]]:
    return [(one.step, one.name, one.detail) for one in trace.events if one.name in ("approved", "declined")]


async def test_a_person_is_shown_method_address_and_fields(shop: Shop, tmp_path: Path) -> None:
    person = Person(True)
    trace = await traced(shop, tmp_path, [SCROLL, Stop()], person)
    (question,) = person.questions
    (held,) = question.requests
    assert (question.step, question.classes, question.action) == (1, ("submit",), "scroll down")
    assert (held.method, held.url, held.kind) == ("POST", f"{shop.url}act", "fetch")
    assert held.fields == (("lock", "1"), ("topic", "a b"))
    assert shop.orders == ["lock=1&topic=a+b"]
    detail = f"scroll down sends POST {shop.url}act with lock=1, topic=a b"
    assert events(trace) == [(1, "approved", detail)]
    commit = trace.steps[0].commit
    assert commit is not None and commit.result.status is Status.OK
    assert [one.answer for one in commit.result.held_requests] == ["yes"]
    assert trace.footer is not None and trace.footer.declined == 0


@pytest.mark.parametrize(("answers", "by"), [(False, "a person declined it"), (None, NOBODY)])
async def test_what_is_declined_is_not_sent_and_counts_as_declined(
    shop: Shop, tmp_path: Path, answers: bool | None, by: str
) -> None:
    """Symptom: scrolling a page that listens sent its request though nobody had approved anything."""
    trace = await traced(shop, tmp_path, [SCROLL, Stop()], Person(answers))
    assert shop.orders == []
    commit = trace.steps[0].commit
    assert commit is not None and commit.result.status is Status.BLOCKED
    assert commit.result.message.startswith(f"the request POST {shop.url}act was not sent, {by}")
    assert [(step, name) for step, name, _ in events(trace)] == [(1, "declined")]
    assert trace.footer is not None and trace.footer.declined == 1


async def test_without_approval_it_is_sent(shop: Shop, tmp_path: Path) -> None:
    """The negative control."""
    await run_open(config(), "Read", shop.url, tmp_path, policy=scripted([SCROLL, Stop()]))
    assert len(shop.orders) == 1


async def test_what_belongs_to_an_approved_action_is_not_asked_about_again(shop: Shop, tmp_path: Path) -> None:
    shop.front = (
        f'<title>Shop</title><button onclick="{SEND.replace(chr(34), chr(39))}; setTimeout(() => {SEND}, 900)">'
    )
    shop.front += "Buy</button>"
    person = Person(True)
    await traced(shop, tmp_path, [Click(ref=1), Wait(), Wait(), Wait(), Stop()], person)
    assert len(person.questions) == 1 and not person.questions[0].requests
    assert len(shop.orders) == 2


async def test_the_dismissal_of_a_dialog_is_no_way_around_the_question(shop: Shop, tmp_path: Path) -> None:
    """Symptom: a declined `confirm`, which needs no approval, let the page send its request."""
    shop.front = f"<title>Shop</title><button onclick=\"if (!confirm('Keep it?')) {SEND}\">Keep</button>"
    person = Person(True, False)
    trace = await traced(shop, tmp_path, [Click(ref=1), AnswerDialog(accept=False), Stop()], person)
    assert [bool(one.requests) for one in person.questions] == [False, True]
    assert shop.orders == []
    assert [(step, name) for step, name, _ in events(trace)] == [(1, "approved"), (2, "declined")]


async def test_three_refusals_end_the_episode(shop: Shop, tmp_path: Path) -> None:
    shop.front = SCROLLS.replace(", {once: true}", "")
    script = [SCROLL] * 9
    trace = await traced(shop, tmp_path, [*script, Stop()], Person(False))
    assert shop.orders == []
    assert trace.footer is not None
    assert (trace.footer.ended_by, trace.footer.declined, len(trace.steps)) == ("declined", 3, 3)


async def test_a_question_that_raises_breaks_the_episode_and_sends_nothing(shop: Shop, tmp_path: Path) -> None:
    async def raises(request: ApprovalRequest) -> bool:
        raise RuntimeError("no terminal")

    settings = config(approve=("submit",))
    script = scripted([SCROLL, SCROLL, Stop()])  # the first time it may be the world that is broken: it is tried again
    run = await run_open(settings, "Read", shop.url, tmp_path, policy=script, approver=raises)
    assert run.episodes[0].outcome == "broken" and "no terminal" in (run.episodes[0].error or "")
    assert shop.orders == []


async def test_a_declared_secret_is_not_shown_in_a_question(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PW", "correct horse")
    shop.front = """<title>Shop</title><form method=post action=/act><input name=pw aria-label=Word></form>
<div style="height: 4000px"></div><script>addEventListener('scroll', () => document.forms[0].submit())</script>"""
    person, script = Person(True), [Type(ref=1, text="<secret>PW</secret>"), SCROLL, Stop()]
    trace = await traced(shop, tmp_path, script, person, secrets=("PW=env:SHOP_PW",))
    assert shop.orders == ["pw=correct+horse"]
    (held,) = person.questions[-1].requests
    assert held.fields == (("pw", "<secret>PW</secret>"),)
    assert all("correct" not in detail for _, _, detail in events(trace))


async def test_a_pending_question_is_asked_again_after_a_cut(shop: Shop, tmp_path: Path) -> None:
    steps: list[int] = []

    async def leaves(request: ApprovalRequest) -> bool:
        steps.append(request.step)
        running.cancel()
        await asyncio.Event().wait()
        return True

    async def agrees(request: ApprovalRequest) -> bool:
        steps.append(request.step)
        return True

    settings, script = config(approve=("submit",)), [SCROLL, SCROLL, Stop()]
    run = run_open(settings, "Read", shop.url, tmp_path, run_id="r", policy=scripted(script), approver=leaves)
    running = asyncio.ensure_future(run)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shop.orders == []
    result = await resume(tmp_path / "r", policy=scripted(script), approver=agrees)
    assert steps == [1, 2]
    assert len(shop.orders) == 1
    assert result.complete


async def test_a_page_that_is_opened_again_sends_nothing_by_itself(shop: Shop, tmp_path: Path) -> None:
    """A kill is no way around the question; and what the page wanted to send keeps nobody from resuming."""
    shop.front = SCROLLS + "<script>fetch('/act', {method: 'POST', body: 'load'})</script>"

    async def leaves(request: ApprovalRequest) -> bool:
        running.cancel()
        await asyncio.Event().wait()
        return True

    settings, script = config(approve=("submit",)), [Wait(), SCROLL, SCROLL, Stop()]
    run = run_open(settings, "Read", shop.url, tmp_path, run_id="r", policy=scripted(script), approver=leaves)
    running = asyncio.ensure_future(run)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shop.orders == ["load"], "what belongs to the start"
    person = Person(True)
    result = await resume(tmp_path / "r", policy=scripted(script), approver=person)
    assert result.complete and len(person.questions) == 1
    assert shop.orders == ["load", "lock=1&topic=a+b"]
    assert result.episodes[0].declined == 0


SCROLLED = 'do(action="Scroll Down")'


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_command_declines_as_it_does_for_actions(shop: Shop, tmp_path: Path, options: list[str]) -> None:
    done = mira_run(shop, tmp_path, [SCROLLED, STOP], "--approve", "submit", *options)
    assert shop.orders == []
    assert done.returncode == 1, "something was declined"
    if options:
        (episode,) = json.loads(done.stdout)["episodes"]
        assert episode["declined"] == 1
    else:
        assert f"step 1 declined: scroll down: POST {shop.url}act ({NOBODY})" in done.stdout
