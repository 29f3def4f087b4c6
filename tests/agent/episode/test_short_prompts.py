"""Short prompts of small general models: no copyable placeholder, examples of their own, a stable beginning."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.episode.policy import ActionProposal, ModelPolicy, Turn
from agent.episode.profile_prompts import render_prompt
from agent.episode.prompts import MISSED, PolicyView, render_policy_prompt
from agent.episode.short_prompts import COPIED, thought_opening
from agent.episode.worked_examples import copied_text, example_for, worked_example
from agent.profiles.profile import Profile, named
from envs.core.action_languages import IDS, PROGRAM, Language, ParseError
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.short_reference import VALUES, possible_now, refuse_placeholders, short_reference
from envs.core.action_place import ActionPlace
from envs.core.actions import Action, Click, Drag, Select, Status, Stop, Type
from envs.core.observation import Element, ElementKey, Observation
from envs.core.past_actions import PastAction
from envs.core.tasks import Milestone, TaskRef
from models.base import Message
from models.prompting.fence import CLOSE, OPEN
from models.providers.scripted_model import ScriptedModel
from tests.past_actions import OK, failed

SMALL = named("small")
both = pytest.mark.parametrize("language", [PROGRAM, IDS], ids=["program", "id"])


def element(ref: int, role: str, name: str, ordinal: int = 0) -> Element:
    return Element(ref, ElementKey("", role, name, ordinal, "0" * 8), "x", (), None, (), None, shown=True)


def page(*elements: Element, text: str = "") -> Observation:
    lines = text or "\n".join(f'[{one.ref}] {one.key.role} "{one.key.name}"' for one in elements)
    url = "http://shop.test/form"
    return Observation(url, "Form", lines, elements, (), "0" * 16, (1280, 800), (0, 0), len(elements))


NAME, SIZE, SEND = element(1, "textbox", "Name"), element(2, "combobox", "Size"), element(3, "button", "Send")
FORM = page(NAME, SIZE, SEND)
VIEW = PolicyView(instruction="Order for ann", observation=FORM, language=PROGRAM, rationale_chars=120)


def past(action: Action, target: Element | None, **result: object) -> PastAction:
    return PastAction(action, None if target is None else target.key, **{"result": OK, "changed": True, **result})  # pyright: ignore[reportArgumentType]


def pages(count: int) -> Observation:
    return page(*(element(n, "link", f"Order {n}") for n in range(1, count + 1)))


def actions_in(text: str, language: Language) -> Iterator[Action]:
    """The action of every line that has a readable one."""
    for line in text.splitlines():
        try:
            yield language.parse(line).action
        except ParseError:
            continue


def placeholder_lines(language: Language) -> list[str]:
    everything = PageChoices(groups=("g1",), files=("a",), file_fields=(1,), tabs=(1,), dialog=True)
    return [*short_reference(language).splitlines(), *possible_now(language, everything)]


@both
def test_the_reference_shows_no_action_that_can_be_copied(language: Language) -> None:
    """An action that is whole without a value, such as going back, is no placeholder."""
    shapes = [shape for line in placeholder_lines(language) for shape in re.split(r", (?=[a-z_]+[ (])|   ", line)]
    assert len(shapes) > 15
    for action in actions_in("\n".join(shapes), language):
        assert getattr(action, "ref", None) is None
        held = [value for _, value in action if isinstance(value, str) and value in VALUES.values()]
        if held:
            with pytest.raises(ParseError, match="copied from the reference"):
                refuse_placeholders([action])
    filled = [action for action in actions_in("\n".join(shapes), language) if getattr(action, "text", None)]
    assert language is IDS or filled == [], "in the program style a placeholder has no quotes"


@both
@pytest.mark.parametrize("controls", [0, 3, 99, 100, 250])
def test_no_number_of_the_example_is_on_the_page(language: Language, controls: int) -> None:
    view = replace(VIEW, language=language, observation=pages(controls))
    system, *example, user = render_prompt(SMALL, view)
    shown = {
        int(number)
        for message in example
        for number in re.findall(r"\[(\d+)\]|\"(\d+)\"", message.text)
        for number in number
        if number
    }
    assert shown and min(shown) > controls
    for message in (system, *example):
        for action in actions_in(message.text, language):
            assert getattr(action, "ref", None) is None or getattr(action, "ref", 0) > controls
    assert {m.role for m in example[::2]} == {"user"} and {m.role for m in example[1::2]} == {"assistant"}
    assert user.role == "user"


def test_the_numbers_and_the_example_vary_with_the_task_and_the_page() -> None:
    goals = [f"Order {n} mugs for ann" for n in range(40)]
    numbers = {
        tuple(re.findall(r"\[(\d+)\]", render_prompt(SMALL, replace(VIEW, instruction=goal))[1].text)) for goal in goals
    }
    texts = {render_prompt(SMALL, replace(VIEW, instruction=goal))[1].text.splitlines()[1] for goal in goals}
    assert len(numbers) > 10 and len(texts) >= 2
    small, large = (render_prompt(SMALL, replace(VIEW, observation=pages(n)))[1].text for n in (20, 300))
    assert small != large


@pytest.mark.parametrize(
    ("goal", "role", "kind"),
    [
        ("Select Canada from the list", "combobox", "choose in a list"),
        ("Select the boxes a and b and submit", "checkbox", "check boxes"),
        ("Type ann into the field", "textbox", "fill in a form"),
        ("Buy a mug", "textbox", "fill in a form"),
        ("What does the mug cost?", "link", "read an answer"),
        ("Open the cart", "link", "click"),
        ("Mark the rows and press Submit when done", "link", "click"),
        ("When does the shop open?", "link", "read an answer"),
        ("Click on the okay button", "textbox", "click"),
        ("Enter ann and click Submit", "textbox", "fill in a form"),
        ("Select the tab Terms", "tab", "click"),
    ],
)
def test_the_example_is_of_the_kind_of_the_task(goal: str, role: str, kind: str) -> None:
    assert example_for(SMALL.examples, goal, page(element(1, role, "x"))).kind == kind


@both
def test_every_example_shows_a_page_of_its_own_and_a_readable_answer(language: Language) -> None:
    for example in SMALL.examples:
        one = replace_examples(example.kind)
        for draw in range(20):
            steps = worked_example(one, f"goal {draw}", FORM)
            assert steps and [len(step.history) for step in steps] == list(range(len(steps)))
            for step in steps:
                known = {each.ref for each in step.observation.elements}
                assert known and step.thought and getattr(step.action, "ref", None) in {None, *known}
                assert language.parse(language.show(step.action)).action == step.action
                assert all(past.target is not None for past in step.history)


def replace_examples(kind: str) -> Profile:
    return SMALL.model_copy(update={"examples": tuple(one for one in SMALL.examples if one.kind == kind)})


def text(view: PolicyView) -> str:
    return "".join(message.text for message in render_prompt(SMALL, view))


def test_consecutive_prompts_share_everything_up_to_what_changed() -> None:
    plan = (Milestone(id="a", text="The name is typed"), Milestone(id="b", text="The form is sent"))
    lines = [f'[{n}] link "Topic {n}"' for n in range(4, 40)]
    before = page(NAME, SIZE, SEND, text="\n".join([*lines, '[1] textbox "Name"', '[3] button "Send"']))
    after = replace(before, text=before.text.replace('"Name"', '"Name" = "ann"'))
    first = replace(VIEW, observation=before, milestones=plan, z=(False, False), next_milestone=0)
    then = replace(
        first, observation=after, z=(True, False), next_milestone=1, history=(past(Type(ref=1, text="ann"), NAME),)
    )
    one, other = text(first), text(then)
    assert one != other
    common = next(place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    assert one[:common].endswith('[1] textbox "Name"'), "the plan's status and what was done come after the page"
    assert render_prompt(SMALL, first)[:-1] == render_prompt(SMALL, then)[:-1]
    elsewhere = replace(then, observation=replace(after, url="http://shop.test/other", title="Other"))
    assert text(elsewhere).startswith(other[: other.index("\n\nAddress:")]), "the address follows the page"


def test_only_the_milestone_to_work_on_is_shown_as_still_to_do() -> None:
    """A small model takes every milestone that it reads for done: a list of four made it skip the first."""
    plan = (Milestone(id="a", text="The name is typed"), Milestone(id="b", text="The form is sent"))
    view = replace(VIEW, milestones=plan, z=(True, False), next_milestone=1)
    user = render_prompt(SMALL, view)[-1].text
    assert "Still to do now\n⟦⟦DATA plan⟧⟧\nso that: The form is sent\n⟦⟦END plan⟧⟧" in user
    assert "The name is typed" not in user
    reached = render_prompt(SMALL, replace(view, z=(True, True), next_milestone=None))[-1].text
    assert "Every milestone of the plan is reached." in reached and "so that" not in reached


def test_with_a_plan_every_step_of_the_example_shows_its_milestone_and_says_that_it_is_not_reached() -> None:
    """Without one the model copied the milestone of the real turn into its `Done:` (docs/results/planning.md)."""
    plan = (Milestone(id="a", text="The name is typed"), Milestone(id="b", text="The form is sent"))
    for one in (replace_examples(example.kind) for example in SMALL.examples):
        for goal in (f"goal {n}" for n in range(20)):
            view = replace(
                VIEW, instruction=goal, milestones=plan, z=(False, False), next_milestone=0, exact_ratings=True
            )
            _, *example, user = render_prompt(one, view)
            steps = worked_example(one, goal, FORM)
            assert len(example) == 2 * len(steps)
            for step, asked, answer in zip(steps, example[::2], example[1::2], strict=True):
                to_do = step.thought.partition("To do: ")[2]
                assert answer.text.startswith(f"# Thought: Not yet: {step.milestone}. To do: {to_do}\n")
                assert form_of_milestone(asked.text) == form_of_milestone(user.text) != ""
                assert f"so that: {step.milestone}\n" in asked.text


def test_a_thought_begins_with_the_milestone_to_work_on() -> None:
    plan = (Milestone(id="a", text="The name is typed."), Milestone(id="b", text="`x`\nis sent"))
    view = replace(VIEW, milestones=plan, z=(False, False), next_milestone=0, exact_ratings=True)
    assert thought_opening(replace(view, exact_ratings=False)) == "", "a model's rating may be wrong"
    assert thought_opening(view) == "Not yet: The name is typed. To do: "
    second = thought_opening(replace(view, next_milestone=1))
    assert "'x'" in second and "`" not in second and "\n" not in second, "it stays on the line of the thought"
    assert thought_opening(replace(view, next_milestone=None)) == thought_opening(VIEW) == ""


def form_of_milestone(prompt: str) -> str:
    """What is around the milestone at the end of a turn; empty without one."""
    match = re.search(r"(Still to do now\n.*so that: ).*(\n.*\n.*)$", prompt, re.DOTALL)
    return "" if match is None else match[1] + match[2]


def test_without_a_plan_the_example_shows_no_milestone() -> None:
    assert all("so that" not in message.text for message in render_prompt(SMALL, VIEW))


@both
def test_done_actions_are_written_as_actions_with_the_numbers_of_this_page(language: Language) -> None:
    moved = page(element(5, "textbox", "Name"), element(6, "button", "Send"))
    gone = element(9, "link", "Home")
    history = (
        past(Click(ref=9), gone),
        past(Type(ref=1, text="ann"), NAME),
        past(Click(ref=3), SEND, changed=False),
        past(Click(ref=77), None, result=failed(Status.NO_SUCH_REF, "no control has 77; nearest are [76]")),
        past(Select(ref=1, option="M"), NAME, result=failed(Status.FAILED, "this is no drop-down")),
    )
    user = render_prompt(SMALL, replace(VIEW, language=language, observation=moved, history=history))[-1].text
    lines = user[user.index(f"{OPEN}DATA actions{CLOSE}\n") :].splitlines()[1:6]
    typed, clicked = language.show(Type(ref=5, text="ann")), language.show(Click(ref=6))
    assert lines[1] == f'2. {typed} (textbox "Name"): done'
    assert lines[2] == f'3. {clicked} (button "Send"): done, but nothing changed on the page'
    assert "<gone>" in lines[0] and "<gone>" in lines[3] and "77" not in user and "76" not in user
    assert lines[4].endswith('(textbox "Name"): failed, this is no drop-down')
    for line in (lines[0], lines[3]):
        with pytest.raises(ParseError):
            language.parse(line.partition(" ")[2])


def test_done_actions_say_where_a_control_without_a_unique_name_is() -> None:
    row = 'beside "Verify password"'
    typed = replace(past(Type(ref=2, text="yA"), element(2, "textbox", "")), place=ActionPlace(where=row))
    dragged = replace(past(Drag(ref=1, to_ref=3), NAME), place=ActionPlace(onto='listitem "Done"'))
    user = render_prompt(SMALL, replace(VIEW, history=(typed, dragged)))[-1].text
    assert f'(textbox "" {row}): done' in user and '(textbox "Name" onto listitem "Done"): done' in user


def test_only_the_latest_actions_are_listed() -> None:
    history = tuple(past(Type(ref=1, text=f"t{n}"), NAME) for n in range(10))
    user = render_prompt(SMALL, replace(VIEW, history=history))[-1].text
    assert "(4 earlier actions)\n5. " in user and '"t9"' in user and '"t3"' not in user


def propose(*answers: str, view: PolicyView = VIEW) -> tuple[ScriptedModel, ActionProposal]:
    model = ScriptedModel(list(answers))
    turn = Turn(TaskRef(suite="open", name="x", seed=0), 1, 1, view)
    return model, asyncio.run(ModelPolicy(model, PROGRAM, "full", profile=SMALL, rationale_chars=120).propose(turn))


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("Click", 'do(action="Click", element=<number>)'),
        ('do(action="Type", element="seven")', 'do(action="Type", argument=<text>, element=<number of a textbox>)'),
        ('do(action="Type", argument="<text>", element="1")', 'do(action="Click", element=<number>)'),
    ],
)
def test_a_repair_says_what_is_valid_and_repeats_nothing_of_the_answer(answer: str, form: str) -> None:
    model, proposal = propose(answer, 'do(action="Click", element="3")')
    assert proposal.action == Click(ref=3)
    first, second = (request.messages for request in model.requests)
    assert second[:-1] == first[:-1] and second[-1].text.startswith(first[-1].text)
    added = second[-1].text.removeprefix(first[-1].text)
    assert form in added and '[3] button "Send"' in added and "seven" not in added
    assert all(message.text != answer for message in second), "what was wrong is not there to be copied"
    assert proposal.calls[0].error, "the trace keeps what was wrong"


QUESTION = replace(VIEW, instruction="Who wrote the newest post?")


def answer_of_the_example() -> str:
    steps = worked_example(SMALL, QUESTION.instruction, QUESTION.observation)
    answer = next(step.action.answer for step in steps if isinstance(step.action, Stop))
    assert answer
    return answer


def test_an_answer_with_a_text_of_the_example_is_asked_for_again() -> None:
    answer = answer_of_the_example()
    copy = f'exit(message="The author is {answer.upper()}.")'
    model, proposal = propose(copy, 'do(action="Click", element="3")', view=QUESTION)
    assert proposal.action == Click(ref=3)
    first, second = (request.messages for request in model.requests)
    assert len(first) > 2 and [message.role for message in second] == ["system", "user"], "without the example"
    assert second[0] == first[0] and second[1].text.startswith(first[-1].text)
    added = second[1].text.removeprefix(first[-1].text)
    assert COPIED in added and answer.upper() not in added
    assert proposal.calls[0].error == COPIED
    _, twice = propose(copy, copy, view=QUESTION)
    assert twice.action is None and twice.error == COPIED


def test_a_text_of_the_example_that_the_turn_has_is_no_copy() -> None:
    observation, answer = QUESTION.observation, answer_of_the_example()
    stop, given = Stop(answer=answer), f"Winter, by {answer}"
    assert copied_text(SMALL, QUESTION.instruction, observation, stop) == answer
    assert copied_text(SMALL, QUESTION.instruction, observation, Stop(answer="9 March")) == "9 March", "of its page"
    assert not copied_text(SMALL, QUESTION.instruction, observation, Stop(answer="on 9 March")), "in other words"
    assert not copied_text(SMALL, QUESTION.instruction, observation, Stop(answer="9")), "a number may be computed"
    assert not copied_text(SMALL, QUESTION.instruction, replace(observation, text=given), stop), "on the page"
    assert not copied_text(SMALL, QUESTION.instruction, observation, stop, given), "in a note"
    assert not copied_text(SMALL, f"{QUESTION.instruction} {given}", observation, stop), "in the goal"
    assert not copied_text(SMALL, QUESTION.instruction, observation, Stop(answer=f"x{answer}x")), "part of a word"
    assert copied_text(SMALL, QUESTION.instruction, observation, Type(ref=1, text=answer)) == answer
    assert not copied_text(SMALL, QUESTION.instruction, observation, Click(ref=1)), "an action without a text"


def test_the_problem_of_the_next_turn_says_what_is_valid() -> None:
    _, proposal = propose("Click", 'do(action="Hover", element="seven")')
    assert proposal.action is None
    assert proposal.error == 'write do(action="Hover", element=<number>) with a number of the page'


def test_a_missed_number_is_not_repeated() -> None:
    user = render_prompt(SMALL, replace(VIEW, missed=77))[-1].text
    assert MISSED in user and '[3] button "Send"' in user and "77" not in user


def test_without_a_rationale_the_example_has_none() -> None:
    bare = render_prompt(SMALL, replace(VIEW, rationale_chars=0))
    assert "Thought" not in "".join(message.text for message in bare)
    assert bare[2].text.startswith("do(")
    assert render_prompt(SMALL, VIEW)[2].text.startswith("# Thought: ")


def test_the_answer_names_its_control() -> None:
    """The prompt asks for the line, and the example shows it where its action is for a control."""
    named = render_prompt(SMALL, replace(VIEW, names_control=True))
    assert "three lines" in named[0].text and "`# Element:`" in named[0].text
    answers = [message.text for message in named if message.role == "assistant"]
    assert answers
    for answer in answers:
        thought, element, action = answer.splitlines()
        assert thought.startswith("# Thought: Done: ") and " To do: " in thought and element.startswith("# Element: ")
        ref = PROGRAM.parse(action).action.model_dump()["ref"]
        assert f"[{ref}] {element.removeprefix('# Element: ')}" in named[1].text
    assert "# Element:" not in "".join(message.text for message in render_prompt(SMALL, VIEW))


def test_the_goal_is_repeated_after_a_long_page() -> None:
    short, long = (render_prompt(SMALL, replace(VIEW, observation=pages(n)))[-1].text for n in (3, 200))
    assert (short.count("Goal: Order for ann"), long.count("Goal: Order for ann")) == (1, 2)


@pytest.mark.parametrize("name", ["large", "compact"])
def test_the_prompts_of_before_are_profiles(name: str) -> None:
    profile = named(name)
    assert render_prompt(profile, VIEW) == render_policy_prompt(profile.style, VIEW)


def digest(messages: tuple[Message, ...]) -> str:
    return hashlib.sha256("\0".join(f"{m.role} {m.text}" for m in messages).encode()).hexdigest()[:16]


def test_the_large_profile_has_the_bytes_of_before() -> None:
    """Changed only on purpose: prompts of large models are compared over versions."""
    view = replace(
        VIEW, max_actions=8, max_notes=20, history=(past(Type(ref=1, text="ann"), NAME),), problems=("lost",)
    )
    assert digest(render_prompt(named("large"), view)) == "4eab4ca8f96facd2"


def test_data_files_are_part_of_the_package() -> None:
    root = Path(__file__).parents[3]
    assert '"*.toml"' in (root / "pyproject.toml").read_text(encoding="utf-8")
