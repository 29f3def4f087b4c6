"""A grounder: the policy describes controls in words, a second model points at them, through the whole agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli.show_trace import show_trace
from agent.episode.approval import ApprovalRequest
from agent.inspection.report import write_report
from agent.results import EpisodeResult
from agent.run.runner import resume, run_open
from envs.core.actions import ClickAt, Type
from envs.core.errors import BadInput
from envs.core.trace import Intent
from envs.core.trace_store import BlobStore, Trace, read_trace
from models.base import ModelBusy, ModelUnavailable
from models.providers.scripted_model import ScriptedModel
from tests.agent.boxes_grounder import FromBoxes, beside, control, json_box, json_point, scale, surface, use
from tests.agent.shop import Shop, config
from tests.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120), pytest.mark.usefixtures("shared_chromium")]

SAVE = "the Save button of the second row"
SPOTS = {
    SAVE: control("Save", 1),
    "the small box before Agree": control("Agree"),
    "the field for the name": control("Name"),
    "the list of sizes": control("Size"),
    "the tiny cross": control("Close"),
    "Pay in the frame": control("Pay"),
    "Vote in the other site's frame": control("Vote"),
    "Copy in the open menu": control("Copy"),
    "the board": surface,
    "the last button of the page": control("Deep"),
}
PAGE = """<!doctype html><title>Page</title><style>body {{ margin: 8px; font: 14px sans-serif }}</style>
<script>addEventListener('click', e => report(e.target.id));
addEventListener('change', e => e.target.id != 'agree' && report(e.target.value));
addEventListener('message', e => report(e.data));
function report(what) {{ if (what) log.textContent += what + ' ' }}</script>
<table><tr><td>One<td><button id=save1>Save</button><tr><td>Two<td><button id=save2>Save</button></table>
<p><input type=checkbox id=agree style="width:10px;height:10px"><label for=agree>Agree</label>
<input aria-label=Name> <select aria-label=Size><option>S<option>M</select>
<button id=close aria-label=Close style="width:9px;height:9px;padding:0;border:0;background:red"></button></p>
<iframe style="width:150px;height:50px;transform:scale(.9)" srcdoc="<button
 onclick=&quot;parent.postMessage('paid', '*')&quot;>Pay</button>"></iframe>
<iframe style="width:150px;height:50px;border:3px solid" src="{frame}"></iframe>
<div style="position:relative;height:60px"><a href="#x" id=under style="position:absolute;left:60px;top:15px">go</a>
<div style="position:absolute;left:0;top:0;width:200px;height:60px;background:#eee"><button id=copy
 style="width:200px;height:60px">Copy</button></div></div>
<canvas id=board width=120 height=80 style="border:1px solid"></canvas><p id=log></p>
<div style="height:3000px"></div><button id=deep>Deep</button>"""
VOTE = """<body style="margin:4px"><button onclick="parent.postMessage('voted', '*')">Vote</button>"""


LOGGED = ["save2", "agree", "bob", "M", "close", "paid", "voted", "copy", "board", "deep"]


def click(words: str) -> str:
    return f'do(action="Click", element="{words}")'


CLICKS = [
    click(SAVE),
    click("the small box before Agree"),
    'do(action="Type", argument="bob", element="the field for the name")',
    'do(action="Select Dropdown Option", argument="M", element="the list of sizes")',
    *map(click, ("the tiny cross", "Pay in the frame", "Vote in the other site's frame", "Copy in the open menu")),
    click("the board"),
    *['do(action="Press Key", argument="End")', click("the last button of the page")],
    "exit()",
]


async def played(
    monkeypatch: pytest.MonkeyPatch, url: str, folder: Path, answers: list[str], grounder: FromBoxes, **settings: Any
) -> tuple[Trace, EpisodeResult, ScriptedModel]:
    """Plays an open task with a policy that answers with *answers*."""
    policy = ScriptedModel(answers, spec="policy")
    use(monkeypatch, policy, grounder)
    values = {"policy": "policy", "grounder": "grounder", "planner": "none", "judge": "none", **settings}
    run = await run_open(config(**values), "Order", url, folder, run_id="r")
    (episode,) = run.episodes
    return read_trace(run.folder / episode.trace), episode, policy


def log_of(trace: Trace, folder: Path) -> str:
    """The page's own log of what was clicked, as seen at the last step."""
    text = BlobStore(folder / "r" / "blobs").text(trace.steps[-1].intent.seen.text_blob)
    return next((line for line in text.splitlines() if "save2" in line), text)


VIEWS = [
    (1, (1280, 800), FromBoxes(SPOTS)),
    (2, (800, 600), FromBoxes(SPOTS, "qwen2.5-vl", json_point)),
    (2, (1280, 800), FromBoxes(SPOTS, "qwen3-vl", json_point)),
    (1.5, (500, 700), FromBoxes(SPOTS, "smolvlm")),
    (1, (900, 700), FromBoxes(SPOTS, "gemma-3", json_box)),
]
"""Device pixels a CSS pixel, size of the view, grounder."""


@pytest.mark.parametrize("case", VIEWS, ids=lambda case: f"{case[0]}-{case[1][0]}-{case[2].profile}")
async def test_a_page_is_solved_in_every_space_at_every_size_of_view(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[float, tuple[int, int], FromBoxes]
) -> None:
    """Rows, a label, a tiny control, frames of both kinds, layers, a drawing, and a page that was scrolled."""
    factor, view, grounder = case
    scale(monkeypatch, factor)
    site.pages |= {"/": PAGE.format(frame=site.url("/vote", host="localhost")), "/vote": VOTE}
    trace, episode, _ = await played(
        monkeypatch,
        site.url(),
        tmp_path,
        list(CLICKS),
        grounder,
        grounder_profile=grounder.profile,
        session={
            "viewport": {"width": view[0], "height": view[1]},
            "allow": [site.url("", host="localhost")],
        },
    )
    assert episode.ended_by == "stop", episode.error
    assert log_of(trace, tmp_path).split() == LOGGED
    intents = [intent for intent, _ in trace.steps]
    assert [intent.target.name if intent.target else "" for intent in intents] == [
        *["Save", "Agree", "Name", "Size", "Close", "Pay", "Vote", "Copy", "", "", "Deep", ""]
    ]
    assert isinstance(intents[8].action, ClickAt)


FORM = """<!doctype html><title>Shop</title><h1>Shop</h1><form method=post action=/buy>
<input name=who aria-label=Name> <button style="width:20px;height:20px;padding:0" aria-label=Buy></button></form>
<p style="margin-top:200px">Far from everything</p><button type=button id=idle>Idle</button>"""
FIELD, BUY = "the field for the name", "the small square"
SHOP = {
    FIELD: control("Name"),
    BUY: control("Buy"),
    "the idle button": control("Idle"),
    "a bit beside": beside("Buy", 22, 4),
    "far off": beside("Buy", 400, 90),
}
TYPE = f'do(action="Type", argument="bob", element="{FIELD}")'
ORDER = [TYPE, click(BUY), "exit()"]


@pytest.fixture
def form(shop: Shop) -> Shop:
    shop.front = FORM
    return shop


async def test_the_trace_tells_description_point_and_control(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    grounder = FromBoxes(SHOP)
    trace, episode, policy = await played(monkeypatch, form.url, tmp_path, list(ORDER), grounder)
    assert form.orders == ["who=bob"]
    typed, bought, _ = (intent for intent, _ in trace.steps)
    assert isinstance(typed.action, Type) and typed.target is not None and typed.target_box is not None
    assert [call.role for call in typed.calls] == ["policy", "grounder"]
    (grounding,) = bought.groundings
    assert (grounding.description, grounding.element, grounding.by) == (BUY, 'button "Buy"', "hit")
    assert grounding.point == pytest.approx(middle_of(bought), abs=1) and grounding.answer.startswith("x=")
    assert bought.seen.screenshot_blob is not None, "what the grounder saw is kept"
    assert (episode.totals.model_calls, episode.totals.cost_usd) == (5, pytest.approx(0.5))
    asked = [request.messages[0].text for request in grounder.requests]
    assert asked == [f"Where is {words}? Answer with x and y in pixels." for words in (FIELD, BUY)]
    system, first = (message.text for message in policy.requests[0].messages)
    assert "DESCRIPTION stands for a control in words" in system and "NUMBER stands" not in system
    assert "Click At" not in system + first and 'textbox "Name"' in first and "[1]" not in first
    log = policy.requests[2].messages[1].text
    assert f'click button "Buy" (described as "{BUY}")' in log
    show_trace(trace, BlobStore(tmp_path / "r" / "blobs"))
    assert f'found: "{BUY}" →' in " ".join(capsys.readouterr().out.split())
    write_report([tmp_path / "r"], out=tmp_path / "report.html")
    assert "Found: &#34;the small square&#34; →" in (tmp_path / "report.html").read_text()


def middle_of(intent: Intent) -> tuple[float, float]:
    assert intent.target_box is not None
    x, y, width, height = intent.target_box
    return x + width / 2, y + height / 2


BAD = {
    "I cannot help with that.": "Your answer names no point.",
    "(10, 10) or (20, 20)": "Your answer names several points.",
    "x=99999, y=10": "The point of your answer is outside of the image.",
    "": "Your answer names no point.",
}


@pytest.mark.parametrize("answer", BAD)
async def test_a_bad_answer_is_asked_for_again_and_the_policy_is_told(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    grounder = FromBoxes(SHOP, errs=[answer, answer, answer])
    trace, episode, policy = await played(monkeypatch, form.url, tmp_path, [TYPE, *ORDER], grounder)
    assert form.orders == ["who=bob"] and episode.ended_by == "stop"
    assert len(grounder.requests) == 5, "twice for the first description, twice for the second, which is found"
    assert grounder.requests[1].messages[-1].text.startswith(BAD[answer])
    assert grounder.requests[1].messages[-2].text == (answer or "(no answer)"), "servers refuse a turn without text"
    (event,) = trace.events
    assert event.name == "grounding_error" and FIELD in event.detail
    assert [(call.role, call.error is None) for call in event.calls] == [
        *[("policy", True), ("grounder", False), ("grounder", False)]
    ]
    assert "nothing of your answer was done" in policy.requests[1].messages[1].text


async def test_an_episode_ends_where_nothing_is_ever_found(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grounder = FromBoxes(SHOP, errs=["nowhere"] * 9)
    trace, episode, _ = await played(monkeypatch, form.url, tmp_path, [TYPE] * 3, grounder)
    assert (episode.ended_by, trace.steps) == ("error", ())
    assert episode.error is not None and "max_parse_errors" in episode.error


async def test_a_point_beside_a_control_means_it_and_one_on_nothing_is_clicked(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_field = TYPE.replace(FIELD, "far off")
    answers = [click("far off"), no_field, TYPE, click("a bit beside"), "exit()"]
    trace, _, policy = await played(monkeypatch, form.url, tmp_path, answers, FromBoxes(SHOP))
    assert form.orders == ["who=bob"]
    away, _, near, _ = (intent for intent, _ in trace.steps)
    assert isinstance(away.action, ClickAt) and away.groundings[0].by == "point"
    assert (near.groundings[0].by, near.groundings[0].distance) == ("near", pytest.approx(12, abs=0.5))
    assert "where no control is that this action (type) can use" in policy.requests[2].messages[1].text


async def test_the_controls_of_a_batch_are_found_before_its_first_action(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "\n".join((TYPE, click("the idle button"), click(BUY)))
    trace, _, policy = await played(monkeypatch, form.url, tmp_path, [answer, "exit()"], FromBoxes(SHOP))
    assert form.orders == ["who=bob"] and len(policy.requests) == 2
    batch = [intent for intent, _ in trace.steps][:3]
    assert [intent.batch.place for intent in batch if intent.batch] == [1, 2, 3]
    assert [intent.groundings[0].element for intent in batch] == [
        *['textbox "Name"', 'button "Idle"', 'button "Buy"'],
    ]
    assert [len(intent.calls) for intent in batch] == [4, 0, 0]


async def test_a_description_that_changed_nothing_is_not_tried_again(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = click("the idle button")
    trace, _, policy = await played(
        monkeypatch, form.url, tmp_path, [idle, idle, idle, TYPE, "exit()"], FromBoxes(SHOP)
    )
    kinds = [intent.action.kind for intent, _ in trace.steps]
    assert kinds == ["click", "click", "type", "stop"], "the first click moved the focus"
    assert [request.temperature > 0 for request in policy.requests] == [False, False, False, True, False]


async def test_a_run_whose_grounder_went_away_is_resumed(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is opened again, so the policy fills in the form once more."""
    grounder = FromBoxes(SHOP, errs=["nowhere", ModelBusy("away")])
    trace, episode, _ = await played(monkeypatch, form.url, tmp_path, [TYPE, *ORDER], grounder)
    assert (episode.outcome, episode.resumable, trace.steps) == ("broken", True, ())
    assert trace.footer is not None and [call.role for call in trace.footer.calls] == ["policy", "grounder"]
    assert episode.totals.tokens_in >= 1_000, "what was answered before the outage counts"
    finished = await resume(tmp_path / "r")
    assert finished.complete and finished.episodes[0].ended_by == "stop" and form.orders == ["who=bob"]


@pytest.mark.parametrize("kept", ["commit", "intent"])
async def test_a_run_killed_between_finding_a_control_and_using_it_looks_first(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """Nothing of the grounder is on disk before the intent, and with it everything: it is not asked about it again."""
    answers = [TYPE, click("the idle button"), "exit()", click("the idle button"), "exit()"]
    grounder = FromBoxes(SHOP)
    trace, _, policy = await played(monkeypatch, form.url, tmp_path, answers, grounder)
    lines = trace.path.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    second = [place for place, kind in enumerate(kinds) if kind == "intent"][1]
    trace.path.write_bytes(b"".join(lines[: second + (kept == "intent")]))
    assert len(grounder.requests) == 2
    assert (await resume(tmp_path / "r")).complete
    assert len(grounder.requests) == 3, "about the answer after the resume"
    prompt = policy.requests[3].messages[1].text
    assert ("may or may not have happened" in prompt) == (kept == "intent")
    assert f'(described as "{FIELD}")' in prompt
    read = read_trace(trace.path)
    assert read.steps[-2].intent.groundings[0].element == 'button "Idle"'


async def test_a_page_that_shows_a_secret_is_not_sent_to_the_grounder(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its screenshot is withheld, so that the policy names controls by number until it is hidden."""
    monkeypatch.setenv("PW", "Kestrel7-Quartz")
    grounder = FromBoxes(SHOP)
    answers = [TYPE.replace("bob", "<secret>PW</secret>"), 'do(action="Click", element="2")', "exit()"]
    trace, _, policy = await played(monkeypatch, form.url, tmp_path, answers, grounder, secrets=("PW=env:PW",))
    assert form.orders == ["who=Kestrel7-Quartz"] and len(grounder.requests) == 1
    assert trace.steps[1].intent.seen.screenshot_blob is None
    assert (
        "NUMBER stands" in policy.requests[1].messages[0].text and "[2] button" in policy.requests[1].messages[1].text
    )
    assert "NUMBER stands" not in policy.requests[0].messages[0].text


async def test_a_person_approves_the_control_that_was_found(
    form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ApprovalRequest] = []

    async def person(request: ApprovalRequest) -> bool:
        asked.append(request)
        return False

    policy = ScriptedModel(list(ORDER), spec="policy")
    use(monkeypatch, policy, FromBoxes(SHOP))
    settings = config(policy="policy", grounder="grounder", planner="none", judge="none", approve=("submit",))
    run = await run_open(settings, "Order", form.url, tmp_path, run_id="r", approver=person)
    assert [request.action for request in asked] == ['click button "Buy": do(action="Click", element="2")']
    assert form.orders == [] and run.episodes[0].declined == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"screenshots": "marks", "policy": "openai:m"}, "marks show numbers"),
        ({"policy": "embedded"}, "compact prompts, which name controls by number"),
        ({"policy": "openai:m", "profile": "small"}, "short prompts, which name controls by number"),
        ({"policy": "openai-computer:m"}, "acts with its vendor's tools"),
        ({"policy": "openai:m", "grounder": "embedded"}, "embedded reads text only"),
        ({"policy": "openai:m", "grounder": "oracle"}, "needs a vision-language model"),
    ],
)
async def test_what_cannot_work_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], message: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with pytest.raises((BadInput, ModelUnavailable), match=message):
        await run_open(config(**{"grounder": "openai:g", **values}), "Order", "http://127.0.0.1:9/", tmp_path)
