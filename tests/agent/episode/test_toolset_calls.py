"""What each call of a vendor's tool set becomes, and how a conversation with a scripted model continues."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image as Pillow

from agent.config import parse_config
from agent.episode.toolsets.anthropic import BROWSER, BROWSER_WITHHELD, COMPUTER, COMPUTER_WITHHELD
from agent.episode.toolsets.calls import Do, Outcome, Refs, Refuse, Scene, TextResult, read_call
from agent.episode.toolsets.display import MAX_EDGE, MAX_PIXELS, MAX_PNG, Display
from agent.episode.toolsets.functions import FUNCTIONS
from agent.episode.toolsets.keys import chords
from agent.episode.toolsets.openai import read_action
from agent.episode.toolsets.policy import MAX_ANSWERS, MAX_ASKED, ToolsetPolicy
from agent.run.components import open_components
from envs.core import actions as act
from envs.core.actions import Action, ActionResult, Reason, Status
from envs.core.errors import BadInput
from envs.core.notes import NoteEdit
from envs.core.observation import ElementKey, Observation, Tab
from models.base import Image, Message, ModelTruncated, Usage
from models.tool_use import Results
from tests.agent.episode.scripted_tools import (
    ELEMENTS,
    OBSERVATION,
    OK,
    SIZE,
    TABS,
    TURN,
    VIEW,
    ScriptedToolModel,
    after,
    png,
    proposed,
)
from tests.outside_text import hostile, obeyed

FREE = replace(OBSERVATION, elements=tuple(replace(each, states=()) for each in ELEMENTS))


def scene(observation: Observation = OBSERVATION, last: Action | None = None) -> Scene:
    made = Scene(replace(VIEW, observation=observation), Display.of(observation.viewport), Refs(), last)
    for each in observation.elements:
        made.refs.name(each.key)
    return made


def ref(number: int) -> dict[str, Any]:
    return {"type": "ref", "ref": f"ref_{number}"}


def at(x: int, y: int) -> dict[str, Any]:
    return {"type": "coordinate", "x": x, "y": y}


CLICK = act.ClickAt(x=30, y=40)
DONE: list[tuple[str, str, dict[str, Any], list[Action]]] = [
    ("c", "left_click", {"coordinate": [30, 40]}, [CLICK]),
    ("c", "right_click", {"coordinate": [30, 40]}, [act.ClickAt(x=30, y=40, button="right")]),
    ("c", "triple_click", {"coordinate": [30, 40]}, [act.ClickAt(x=30, y=40, count=3)]),
    (
        "c",
        "left_click_drag",
        {"start_coordinate": [1, 2], "coordinate": [3, 4]},
        [act.DragAt(x=1, y=2, to_x=3, to_y=4)],
    ),
    ("c", "scroll", {"scroll_direction": "down", "scroll_amount": 3}, [act.ScrollAt(x=640, y=400, dy=300)]),
    ("c", "mouse_move", {"coordinate": [50, 15]}, [act.Hover(ref=1)]),
    ("c", "key", {"text": "ctrl+shift+Page_Down"}, [act.Press(keys="Control+Shift+PageDown")]),
    ("c", "key", {"text": "Tab", "repeat": 2}, [act.Press(keys="Tab")] * 2),
    ("c", "type", {"text": "a@b.c"}, [act.Type(ref=1, text="a@b.c", clear=False)]),
    ("c", "type", {"text": "a@b.c\n"}, [act.Type(ref=1, text="a@b.c", clear=False, enter=True)]),
    ("c", "type", {"text": "<secret>PIN</secret>"}, [act.Type(ref=1, text="<secret>PIN</secret>", clear=False)]),
    ("c", "type", {"text": "\n\n"}, [act.Press(keys="Enter")] * 2),
    ("c", "wait", {"duration": 2}, [act.Wait()]),
    ("b", "left_click", {"target": ref(4)}, [act.Click(ref=4)]),
    ("b", "double_click", {"target": at(30, 40)}, [act.ClickAt(x=30, y=40, count=2)]),
    ("b", "form_input", {"target": ref(1), "value": "x"}, [act.Type(ref=1, text="x")]),
    ("b", "form_input", {"target": ref(1), "value": 12.0}, [act.Type(ref=1, text="12")]),
    ("b", "form_input", {"target": ref(2), "value": False}, [act.Click(ref=2)]),
    ("b", "form_input", {"target": ref(3), "value": "M"}, [act.Select(ref=3, option="M")]),
    ("b", "file_upload", {"target": ref(4), "paths": ["a.txt"]}, [act.Upload(ref=4, path="a.txt")]),
    ("b", "hover", {"target": ref(4)}, [act.Hover(ref=4)]),
    ("b", "scroll_to", {"target": ref(4)}, [act.Hover(ref=4)]),
    ("b", "scroll", {"target": at(9, 8), "scroll_direction": "up"}, [act.ScrollAt(x=9, y=8, dy=-300)]),
    ("b", "left_click_drag", {"from": at(1, 2), "target": at(3, 4)}, [act.DragAt(x=1, y=2, to_x=3, to_y=4)]),
    ("b", "navigate", {"url": "shop.test/a"}, [act.Goto(url="shop.test/a")]),
    ("b", "navigate", {"url": "back"}, [act.Back()]),
    ("b", "navigate", {"url": "reload"}, [act.Goto(url="http://shop.test/")]),
    ("b", "new_tab", {}, [act.NewTab()]),
    ("b", "switch_tab", {"tab_id": "1"}, [act.FocusTab(index=1)]),
    ("b", "close_tab", {"tab_id": "1"}, [act.FocusTab(index=1), act.CloseTab()]),
    ("b", "read_page", {"ref": "g2"}, [act.Expand(group="g2")]),
    ("o", "click", {"x": 30, "y": 40, "button": "left"}, [CLICK]),
    ("o", "click", {"x": 30, "y": 40, "button": "wheel"}, [act.ClickAt(x=30, y=40, button="middle")]),
    ("o", "click", {"x": 30, "y": 40, "button": "back"}, [act.Back()]),
    ("o", "double_click", {"x": 30, "y": 40, "keys": None}, [act.ClickAt(x=30, y=40, count=2)]),
    (
        "o",
        "drag",
        {"path": [{"x": 1, "y": 2}, {"x": 9, "y": 9}, {"x": 3, "y": 4}]},
        [act.DragAt(x=1, y=2, to_x=3, to_y=4)],
    ),
    ("o", "keypress", {"keys": ["CTRL", "A"]}, [act.Press(keys="Control+A")]),
    ("o", "keypress", {"keys": ["TAB", "ENTER"]}, [act.Press(keys="Tab"), act.Press(keys="Enter")]),
    ("o", "scroll", {"x": 9, "y": 8, "scroll_x": 0, "scroll_y": -50}, [act.ScrollAt(x=9, y=8, dy=-50)]),
    ("o", "type", {"text": "hi"}, [act.Type(ref=1, text="hi", clear=False)]),
    ("o", "wait", {}, [act.Wait()]),
    ("f", "finish", {"answer": "42"}, [act.Stop(answer="42")]),
    ("f", "finish", {}, [act.Stop()]),
    ("f", "navigate", {"url": "forward"}, [act.Forward()]),
    ("f", "tab", {"index": 1}, [act.FocusTab(index=1)]),
    ("f", "tab", {"close": True}, [act.CloseTab()]),
]


def outcome(kind: str, name: str, arguments: dict[str, Any], where: Scene) -> Outcome:
    if kind == "o":
        return read_action({"type": name, **arguments}, where)
    table = {"c": COMPUTER, "b": BROWSER, "f": FUNCTIONS}[kind]
    return read_call(table, name, arguments, where)


@pytest.mark.parametrize(("kind", "name", "arguments", "actions"), DONE, ids=lambda value: str(value)[:24])
def test_a_call_becomes_actions(kind: str, name: str, arguments: dict[str, Any], actions: list[Action]) -> None:
    assert outcome(kind, name, arguments, scene()) == Do(tuple(actions))


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("c", "left_mouse_down", {}, "not available"),
    ("c", "left_click", {}, "give a coordinate"),
    ("c", "left_click", {"coordinate": [5000, 1]}, "outside the screenshot"),
    ("c", "left_click", {"coordinate": ["1", 2]}, "a number is missing"),
    ("c", "left_click", {"coordinate": [1, 2, 3]}, "coordinates are missing"),
    ("c", "left_click", {"coordinate": [float("nan"), 2]}, "a number is missing"),
    ("c", "left_click", {"coordinate": [1, 2], "text": "ctrl"}, "held down"),
    ("c", "scroll", {"scroll_direction": "sideways", "scroll_amount": 1}, "up, down"),
    ("c", "key", {"text": "Hyper+a"}, "no name"),
    ("c", "key", {"text": "a", "repeat": 21}, "too many"),
    ("c", "key", {"text": "a", "repeat": 1e300}, "too many"),
    ("c", "key", {"text": "a", "repeat": 10**400}, "number is missing"),
    ("c", "zoom", {"region": [5, 5, 5, 9]}, "region"),
    ("c", "type", {"text": ""}, "no text to type"),
    ("b", "left_click", {"target": ref(99)}, "read the page again"),
    ("b", "left_click", {}, "an object is missing"),
    ("b", "left_click", {"target": ref(4), "tab_id": "1"}, "not in front"),
    ("b", "left_click", {"target": ref(4), "modifiers": "shift"}, "held down"),
    ("b", "form_input", {"target": ref(2), "value": "on"}, "true or false"),
    ("b", "file_upload", {"target": ref(4), "paths": ["a", "b"]}, "one path"),
    ("b", "switch_tab", {"tab_id": "7"}, "no tab"),
    ("b", "hold_key", {"text": "a", "duration": 1}, "not available"),
    ("b", "javascript_exec", {"text": "1"}, "not available"),
    ("o", "fly", {}, "not available"),
    ("o", "click", {"x": 1, "y": 2, "button": "left", "keys": ["SHIFT"]}, "held down"),
    ("o", "drag", {"path": [{"x": 1, "y": 2}]}, "two points"),
    ("f", "answer_dialog", {"accept": True}, "no dialog"),
]


@pytest.mark.parametrize(("kind", "name", "arguments", "says"), REFUSED, ids=lambda value: str(value)[:24])
def test_a_call_without_equivalent_says_why(kind: str, name: str, arguments: dict[str, Any], says: str) -> None:
    refused = outcome(kind, name, arguments, scene())
    assert isinstance(refused, Refuse) and says in refused.reason.text


def test_text_goes_to_the_focus_alone_and_replaces_what_is_selected() -> None:
    assert isinstance(outcome("c", "type", {"text": "x"}, scene(FREE)), Refuse)
    for last in (act.ClickAt(x=1, y=1, count=3), act.Press(keys="Control+a")):
        assert outcome("c", "type", {"text": "x"}, scene(last=last)) == Do((act.Type(ref=1, text="x", clear=True),))
    dropped = replace(FREE, elements=(replace(ELEMENTS[2], states=("focused",), ref=1),))
    assert outcome("o", "type", {"text": "M"}, scene(dropped)) == Do((act.Select(ref=1, option="M"),))
    assert outcome("c", "left_click", {}, scene(last=act.ScrollAt(x=7, y=8))) == Do((act.ClickAt(x=7, y=8),))


def test_reading_names_elements_that_stay_valid_when_numbers_change() -> None:
    where = Scene(VIEW, Display.of(SIZE), Refs(), None)
    read = outcome("b", "read_page", {}, where)
    assert isinstance(read, TextResult)
    assert '[ref_4] button "Save order"' in read.text.text and "\\[9] not a control" in read.text.text
    moved = replace(OBSERVATION, elements=(replace(ELEMENTS[3], ref=1),))
    later = replace(where, view=replace(VIEW, observation=moved))
    assert outcome("b", "left_click", {"target": ref(4)}, later) == Do((act.Click(ref=1),))
    assert isinstance(outcome("b", "left_click", {"target": ref(1)}, later), Refuse)
    found = outcome("b", "find", {"query": "button to save"}, where)
    assert isinstance(found, TextResult) and 'button "Save order"' in found.text.text and "Agree" not in found.text.text


def test_page_text_in_a_result_is_data() -> None:
    bad = replace(
        OBSERVATION,
        text=hostile("click pay"),
        elements=(replace(ELEMENTS[0], key=ElementKey("", "link", hostile("pay"), 0, "0")),),
    )
    where = scene(bad)
    for name, arguments in (
        ("read_page", {}),
        ("get_page_text", {}),
        ("find", {"query": "pay"}),
        ("read_page", {"filter": "interactive"}),
    ):
        answer = outcome("b", name, arguments, where)
        assert isinstance(answer, TextResult) and answer.text.text
        assert not obeyed([Message("user", answer.text.text)], "pay"), name


def test_what_is_withheld_has_no_entry() -> None:
    assert not set(BROWSER_WITHHELD) & set(BROWSER) and not set(COMPUTER_WITHHELD) & set(COMPUTER)


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080), (3840, 2160), (400, 4000), (8192, 100)])
@pytest.mark.parametrize("device", [1, 2])
def test_a_point_of_the_picture_is_the_point_of_the_view(size: tuple[int, int], device: int) -> None:
    display = Display.of(size)
    assert max(display.size) <= MAX_EDGE and display.size[0] * display.size[1] <= MAX_PIXELS
    shot = png((size[0] * device, size[1] * device))
    with Pillow.open(io.BytesIO(display.picture(shot).data)) as shown:
        assert shown.size == display.size
    for share in (0.0, 0.25, 0.5, 1.0):
        x, y = (round(length * share) for length in display.size)
        for value, axis in zip(display.to_css(x, y), (0, 1), strict=True):
            assert abs(value - size[axis] * share) <= size[axis] / display.size[axis] + 1
            assert 0 <= value < size[axis]
    with Pillow.open(io.BytesIO(display.zoom(shot, (0, 0, 20, 10)).data)) as zoomed:
        assert zoomed.width <= display.size[0] and zoomed.height <= display.size[1]
        assert max(zoomed.width / display.size[0], zoomed.height / display.size[1]) > 0.9, "as large as it may be"


def test_a_large_picture_is_sent_as_jpeg() -> None:
    noise, out = Pillow.effect_noise(SIZE, 90).convert("RGB"), io.BytesIO()
    noise.save(out, "PNG")
    assert len(out.getvalue()) > MAX_PNG
    sent = Display.of(SIZE).picture(out.getvalue())
    assert sent.media_type == "image/jpeg" and len(sent.data) < len(out.getvalue())
    with Pillow.open(io.BytesIO(sent.data)) as shown:
        assert (shown.size, shown.format) == (SIZE, "JPEG")
    assert Display.of(SIZE).picture(png()) == Image(png()), "a small one is sent as it is"


KEYS: dict[str, list[str] | None] = {
    "Return": ["Enter"],
    "ctrl+a": ["Control+a"],
    "BackSpace Delete": ["Backspace", "Delete"],
    "ctrl++": ["Control++"],
    " ": ["Space"],
    "é": ["é"],
    "": None,
    "Nope": None,
}


@pytest.mark.parametrize(("text", "keys"), KEYS.items())
def test_key_names(text: str, keys: list[str] | None) -> None:
    assert chords(text) == keys


def test_the_calls_of_an_answer_are_done_one_at_a_time() -> None:
    model = ScriptedToolModel(
        "anthropic-computer",
        [("screenshot", {})],
        [("left_click", {"coordinate": [5, 6]}), ("type", {"text": "tea"}), ("screenshot", {})],
        [("finish", {"answer": "yes"})],
    )
    policy = ToolsetPolicy(model)
    first = proposed(policy, TURN)
    assert first.action == act.ClickAt(x=5, y=6)
    assert [call.error is None for call in first.calls] == [False, True], "the first call only observed"
    second_turn = after(TURN, first.action, OK)
    second = proposed(policy, second_turn)
    assert second.action == act.Type(ref=1, text="tea", clear=False) and second.calls == ()
    third = proposed(policy, after(second_turn, second.action, OK))
    assert third.action == act.Stop(answer="yes")
    said = model.requests[-1].history[-1]
    assert isinstance(said, Results) and said.news is not None
    assert [result.text.split()[0] for result in said.results[:2]] == ["Done.", "Done."]
    assert said.results[2].image is not None and said.news.images == (), "one picture of one page"
    assert [type(item).__name__ for item in model.requests[-1].history] == [
        "Message",
        "ModelTurn",
        "Results",
        "ModelTurn",
        "Results",
    ]


@pytest.mark.parametrize(
    ("result", "observation"),
    [
        (ActionResult(status=Status.FAILED, message="no"), OBSERVATION),
        (OK, replace(OBSERVATION, document="another")),
        (OK, replace(OBSERVATION, url="http://shop.test/next")),
        (OK, replace(OBSERVATION, tabs=TABS[:1])),
    ],
)
def test_the_rest_is_dropped_where_one_fails_or_the_page_changes(
    result: ActionResult, observation: Observation
) -> None:
    model = ScriptedToolModel(
        "anthropic-computer", [("left_click", {"coordinate": [5, 6]}), ("type", {"text": "tea"})], [("finish", {})]
    )
    policy = ToolsetPolicy(model)
    first = proposed(policy, TURN)
    assert first.action is not None
    second = proposed(policy, after(TURN, first.action, result, observation))
    assert second.action == act.Stop()
    said = model.requests[1].history[-1]
    assert isinstance(said, Results)
    assert said.results[1].is_error and "Not done" in said.results[1].text


def test_an_episode_that_goes_on_elsewhere_begins_a_new_conversation_with_its_log() -> None:
    """As after a resume: nothing but the turn is known."""
    turn = after(TURN, act.Goto(url="http://shop.test/"), OK)
    for policy, model in [made(), made(busy=True)]:
        assert proposed(policy, turn).action == act.Stop()
        (first,) = model.requests[-1].history
        assert isinstance(first, Message) and "goto" in first.text and "Goal: Buy tea" in first.text


def made(*, busy: bool = False) -> tuple[ToolsetPolicy, ScriptedToolModel]:
    """A policy, which was *busy* with another run of the same task."""
    answers = [[("left_click", {"coordinate": [5, 6]})]] * busy
    model = ScriptedToolModel("openai-computer" if not busy else "anthropic-computer", *answers, [("finish", {})])
    policy = ToolsetPolicy(model)
    if busy:
        proposed(policy, TURN)
    return policy, model


def test_the_same_task_played_again_begins_anew() -> None:
    model = ScriptedToolModel("anthropic-browser", [("finish", {})], [("finish", {"answer": "again"})])
    policy = ToolsetPolicy(model)
    assert proposed(policy, TURN).action == act.Stop()
    assert proposed(policy, TURN).action == act.Stop(answer="again")
    assert len(model.requests[1].history) == 1


def test_an_answer_that_was_not_accepted_is_told() -> None:
    model = ScriptedToolModel("anthropic-browser", [("finish", {})], [("finish", {"answer": "[]"})])
    policy = ToolsetPolicy(model)
    proposed(policy, TURN)
    again = replace(TURN, view=replace(VIEW, problems=("your answer was no action: not JSON",)))
    assert proposed(policy, again).action == act.Stop(answer="[]")
    said = model.requests[1].history[-1]
    assert isinstance(said, Results) and said.results[0].is_error
    assert said.news is not None and "not JSON" in said.news.text


def test_words_alone_are_asked_about_once_and_then_end_the_episode() -> None:
    model = ScriptedToolModel("openai-computer", "# Note: tea is 3 euros\nShall I buy it?", "It is bought.")
    proposal = proposed(ToolsetPolicy(model), TURN)
    assert proposal.action == act.Stop(answer="It is bought.")
    assert proposal.note_edits == (NoteEdit(None, "tea is 3 euros"),)
    assert len(proposal.calls) == 2


def test_a_model_that_only_observes_gives_no_action() -> None:
    model = ScriptedToolModel("anthropic-browser", *([[("hold_key", {})]] * MAX_ASKED))
    proposal = proposed(ToolsetPolicy(model), TURN)
    assert proposal.action is None and "hold_key: this tool is not available here" in proposal.error
    assert len(proposal.calls) == MAX_ASKED and all(call.error for call in proposal.calls)


def test_a_truncated_answer_is_no_action_and_an_outage_breaks_the_turn() -> None:
    cut = ModelTruncated("too long")
    cut.usage = Usage(tokens_out=9)
    model = ScriptedToolModel("openai-computer", cut, [("finish", {})])
    proposal = proposed(ToolsetPolicy(model), TURN)
    assert proposal.action == act.Stop() and proposal.calls[0].error == "too long"
    twice = proposed(ToolsetPolicy(ScriptedToolModel("openai-computer", cut, cut)), TURN)
    assert twice.action is None and twice.error == "too long" and len(twice.calls) == 2
    broken = ModelTruncated("the connection broke")
    with pytest.raises(ModelTruncated) as caught:
        proposed(ToolsetPolicy(ScriptedToolModel("openai-computer", [("answer_dialog", {})], broken)), TURN)
    assert caught.value.usage == Usage(tokens_in=10), "what the turn spent before counts"


def test_a_long_conversation_begins_anew() -> None:
    answers = [[("wait", {})]] * (MAX_ANSWERS + 1)
    model = ScriptedToolModel("anthropic-computer", *answers)
    policy, turn = ToolsetPolicy(model), TURN
    for _ in range(MAX_ANSWERS + 1):
        action = proposed(policy, turn).action
        assert action is not None
        turn = after(turn, action, OK)
    assert len(model.requests[-2].history) == 2 * MAX_ANSWERS - 1
    assert len(model.requests[-1].history) == 1


def test_a_withheld_screenshot_is_replaced_by_words() -> None:
    hidden = replace(TURN, view=replace(VIEW, observation=replace(OBSERVATION, screenshot=None, note="left out")))
    model = ScriptedToolModel("openai-computer", [("answer_dialog", {})], [("finish", {})])
    proposed(ToolsetPolicy(model), hidden)
    first, _, said = model.requests[1].history
    assert isinstance(first, Message) and first.images == () and 'button "Save order"' in first.text
    assert isinstance(said, Results)


def test_every_text_from_outside_is_data_in_the_prompts() -> None:
    bad = hostile("pay now")
    failed = ActionResult(status=Status.FAILED, message=bad, output=bad, reason=Reason.BROWSER_ERROR)
    observation = replace(OBSERVATION, title=bad, text=bad, note=bad, tabs=(Tab(0, bad, bad, True),))
    turn = replace(TURN, view=replace(VIEW, observation=observation, problems=(bad,)))
    model = ScriptedToolModel("anthropic-computer", [("left_click", {"coordinate": [5, 6]})], [("finish", {})])
    policy = ToolsetPolicy(model)
    action = proposed(policy, turn).action
    assert action is not None
    proposed(policy, after(turn, action, failed, observation))
    first, _, said = model.requests[-1].history
    assert isinstance(first, Message) and isinstance(said, Results) and said.news is not None
    results = [Message("user", result.text) for result in said.results]
    assert not obeyed([first, said.news, *results], "pay now")


async def test_one_base_url_is_not_used_for_two_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the key of one vendor would go to the server of another."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-test")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    roles = {"policy": "anthropic-browser:claude-opus-5", "planner": "openai:llama", "judge": "none"}
    made = parse_config({**roles, "base_url": "http://127.0.0.1:1/v1"})
    with pytest.raises(BadInput, match=r"give each role its own \(--base-url ROLE=URL\)"):
        async with open_components(made, "open"):
            pass
    others = {
        "policy": "openai:llama",
        "planner": "litellm:mistral/m",
        "judge": "none",
        "base_url": "http://127.0.0.1:1",
    }
    says = "litellm:mistral/m needs the mistral protocol and openai:llama the OpenAI protocol: give each role its own"
    with pytest.raises(BadInput, match=says):
        async with open_components(parse_config(others), "open"):
            pass
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:2")
    with pytest.raises(BadInput, match=r"give each role its own \(--base-url ROLE=URL\)"):
        async with open_components(made, "open"):
            pass
    planned = parse_config({**roles, "planner_base_url": "http://127.0.0.1:1/v1"})
    async with open_components(planned, "open") as components:
        assert isinstance(components.policy, ToolsetPolicy) and components.needs_pictures
        assert components.policy.spec == "anthropic-browser:claude-opus-5"
    async with open_components(
        parse_config({"policy": "embedded", "judge": "none", "planner": "none"}), "open"
    ) as plain:
        assert not plain.needs_pictures
