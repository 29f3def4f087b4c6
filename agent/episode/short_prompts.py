"""Renders the short prompts of profiles for small general models.

::

    system      role, form of the answer, the common actions with the roles that take them, rules
    user        a goal and page of an example                        with numbers that are not on the shown page
    assistant   its answer; so for each of its steps
    user        goal, page, | address, what was done, problems, the milestone, the goal again, the question

What is equal at consecutive steps comes first: everything up to the page, and its unchanged beginning. The example has
exactly the form of the real turn. Text from outside is fenced as in the full prompts of large models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent.episode.answer_rules import action_rule
from agent.episode.past_lines import past_lines
from agent.episode.points import offers_points, points_text
from agent.episode.prompts import MISSED, PolicyView, news_parts, notes_offer, notes_part, one_line, provided_parts
from agent.episode.worked_examples import WorkedStep, worked_example
from agent.profiles.profile import Profile
from envs.core.action_languages import Language
from envs.core.action_languages.choices import page_choices
from envs.core.action_languages.form_language import ELEMENT_LINE, TO_DO
from envs.core.action_languages.short_reference import possible_now, shape_of, short_reference
from envs.core.actions import Stop
from envs.core.control_labels import control_label
from envs.core.tasks import Milestone
from envs.observer.action_log import action_log_lines
from envs.observer.nearest_controls import nearest_controls
from models.base import Message
from models.prompting.fence import FENCE_RULE
from models.prompting.prompt_text import (
    NOTHING,
    PromptText,
    fenced,
    fenced_lines,
    folded,
    joined,
    message,
    number,
    on_one_line,
    own,
    words,
)

LONG_PAGE_CHARS: Final = 1_500
"""After a longer page the goal is repeated."""
GOAL_CHARS: Final = 300
"""Longest repeated goal."""
LISTED_PROBLEMS: Final = 3

_ROLE: Final = "You operate a web browser to reach a goal. Each turn you see the page and answer with the next action."
_QUESTION: Final = "What is your next action?"
_RULES: Final = f"""\
Rules
- Use the numbers of the page shown last. Copy names and texts exactly as the goal and the page write them.
- Do what the goal still needs. What is done stays done: do not do it again. If an action failed, do something else.
- Forms are sent at the end, with their button.
- {FENCE_RULE}"""


def is_short_prompt(messages: Sequence[tuple[str, str]]) -> bool:
    """Whether the (role, text) *messages* of a recorded prompt were rendered here."""
    return bool(messages) and messages[0][0] == "system" and messages[0][1].startswith(_ROLE)


def render_short_prompt(profile: Profile, view: PolicyView) -> tuple[Message, ...]:
    """Renders *view*; equal views give equal messages."""
    steps = worked_example(profile, view.instruction, view.observation)
    shown = [message for step in steps for message in _example_turn(profile, view, step)]
    head = words("Your task") if shown else NOTHING
    asked = joined("\n", filter(None, (head, _user(profile, view))))
    return (message("system", _system(profile, view)), *shown, message("user", asked))


def _system(profile: Profile, view: PolicyView) -> PromptText:
    language = view.language
    actions = words("Actions\n") + own(language.reference if profile.reference == "long" else short_reference(language))
    several = [action_rule(view.max_actions)] if view.max_actions > 1 else []
    end = words("- When nothing is left to do, or the goal asks for an answer that you know: ") + own(
        language.show(Stop())
    )
    rules = joined("\n", (words(_RULES), end))
    parts = (words(_ROLE), _form(view), actions, rules, *several)
    return joined("\n\n", (*parts, *notes_offer(view), *provided_parts(view.provided)))


def _form(view: PolicyView) -> PromptText:
    """What an answer consists of."""
    lines: list[PromptText] = []
    if view.rationale_chars:
        reason = words("`# Thought:` and a reason of at most "), number(view.rationale_chars), words(" characters")
        lines.append(joined("", reason))
    if view.names_control:
        lines.append(words("`# Element:` and the control of the page that the action is for, if it is for one"))
    if not lines:
        return words("Your answer is one line: the action.")
    count = words("two" if len(lines) == 1 else "three")
    return joined(
        "", (words("Your answer has "), count, words(" lines: "), joined("; ", [*lines, words("the action.")]))
    )


def _example_turn(profile: Profile, view: PolicyView, example: WorkedStep) -> tuple[Message, ...]:
    """One step of the example, with a milestone where the real turn has a plan.

    Without one, a 1.5B model copied the milestone of the real turn into the `Done:` of its answer:
    docs/results/planning.md.
    """
    plan = (Milestone(id="example", text=example.milestone),) if view.milestones and example.milestone else ()
    shown = PolicyView(
        instruction=example.goal,
        observation=example.observation,
        language=view.language,
        milestones=plan,
        next_milestone=0 if plan else None,
        exact_ratings=view.exact_ratings,
        history=example.history,
        history_chars=view.history_chars,
    )
    target = example.target if view.names_control else None
    head = words("Next step of the example" if example.history else "An example with another page")
    asked = joined("\n", (head, _user(profile, shown)))
    opening = thought_opening(shown)
    said = f"{opening}{example.thought.partition(TO_DO)[2]}" if opening else example.thought
    thought = [words("# Thought: ") + own(said)] if view.rationale_chars else []
    element = [own(f"{ELEMENT_LINE}{control_label(target)}")] if target is not None else []
    answer = joined("\n", (*thought, *element, own(view.language.show(example.action))))
    return message("user", asked), Message("assistant", answer.text)


def _user(profile: Profile, view: PolicyView) -> PromptText:
    page = [_page(view)]
    past = _past(profile, view)
    body = (*page, *past) if profile.page_first else (*past, *page)
    parts = [words("Goal: ") + on_one_line(view.instruction, 8_000), *body]
    if view.notes or view.note_remarks:
        parts.append(notes_part(view))
    if (points := points_text(view.observation, view.language.pixels, view.points)) is not None:
        parts.append(points)
    parts += [*_problems(view), *_news(view), *_now_possible(view), *_milestone(view)]
    if len(view.observation.text) > LONG_PAGE_CHARS:
        parts.append(words("Goal: ") + on_one_line(view.instruction, GOAL_CHARS))
    parts.append(words(_QUESTION))  # else small models continue the list of actions
    return joined("\n", parts)


def thought_opening(view: PolicyView) -> str:
    """What the thought of an answer begins with: that the milestone to work on is not reached; empty without one, and
    where a model rates. Such a rating may be wrong, and a policy that must repeat it repeats its last action.

    A 1.5B that wrote its own beginning called the milestone done, and acted on that: docs/results/planning.md."""
    place = view.next_milestone
    if not view.exact_ratings or place is None or place >= len(view.milestones):
        return ""
    text = one_line(view.milestones[place].text).replace("`", "'").rstrip(".")
    return f"Not yet: {text}. {TO_DO}"


def _milestone(view: PolicyView) -> list[PromptText]:
    """The milestone to work on, alone: small models take a listed milestone for something that was done already.

    Measured with Qwen2.5-Coder-1.5B: docs/results/planning.md.
    """
    if not view.milestones:
        return []
    place = view.next_milestone
    if place is None or place >= len(view.milestones):
        return [words("Every milestone of the plan is reached.")]
    return [words("Still to do now\n") + fenced("plan", f"so that: {one_line(view.milestones[place].text)}")]


def _page(view: PolicyView) -> PromptText:
    """The page with its address at the end, which changes with every page of a site; its head line seldom does."""
    observation = view.observation
    lines = [f"Address: {one_line(observation.url)}"] if observation.url else []
    lines += [f"Title: {one_line(observation.title, 120)}"] if observation.title else []
    if len(observation.tabs) > 1:
        lines += [f"Tab {t.index}{' (front)' if t.active else ''}: {one_line(t.title, 80)}" for t in observation.tabs]
    if observation.dialog is not None:
        lines.append(
            f'Open dialog ({observation.dialog.type}), answer it first: "{one_line(observation.dialog.message)}"'
        )
    shown = fenced("page", "\n".join([observation.text, *([""] if lines else []), *map(folded, lines)]))
    note = [words("Note of the observer"), fenced("note", one_line(observation.note))] if observation.note else []
    return joined("\n", (words("The page"), shown, *note))


def _past(profile: Profile, view: PolicyView) -> list[PromptText]:
    if not view.history:
        return [words("Done so far: nothing")]
    history = view.history if view.points is None else tuple(map(view.points.to_model, view.history))
    if profile.history == "words":
        lines = action_log_lines(history, view.history_chars)
        lines = lines[-profile.history_lines :] if profile.history_lines else lines
    else:
        lines = past_lines(history, view.language, view.observation, profile.history_lines)
    return [words("Done so far\n") + fenced_lines("actions", lines)]


def _problems(view: PolicyView) -> list[PromptText]:
    lines = [f"- {one_line(problem)}" for problem in view.problems[-LISTED_PROBLEMS:]]
    parts = [words("Problems\n") + fenced_lines("problems", lines)] if lines else []
    if view.missed is not None:
        controls = nearest_controls(view.observation.elements, view.missed)
        listed = words(":\n") + fenced("controls", controls) if controls else words("; it has none.")
        parts.append(words(MISSED) + listed)
    return parts


def _news(view: PolicyView) -> list[PromptText]:
    news = news_parts(view)
    return [joined("\n", (words("What came of your last action"), *news))] if news else []


def _now_possible(view: PolicyView) -> list[PromptText]:
    observation = view.observation
    provided, points = view.provided, offers_points(observation, view.points)
    choices = page_choices(observation, files=provided.files, tools=provided.tool_names, coordinates=points)
    shapes = possible_now(view.language, choices)
    return [joined("\n", (words("Also possible on this page:"), *map(own, shapes)))] if shapes else []


COPIED: Final = "it had a text of the example; take texts from your goal and your page, or open another page first"
"""What is wrong with an answer that has a text of the example."""


def repair_text(view: PolicyView, form: str, *, copied: bool = False) -> PromptText:
    """The end of a prompt after an answer without a valid action. It says what is valid and does not repeat the answer,
    which a small model would copy. *form*: name of the action that was tried; empty if there was none. *copied*: it had
    a text of the example."""
    if copied:
        return words(f"Your last answer was no valid action: {COPIED}.")
    parts = [words("Your last answer was no valid action. Write: ") + own(shape_of(view.language, form))]
    if controls := nearest_controls(view.observation.elements):
        parts += [words("with a number of the page, such as those of"), fenced("controls", controls)]
    return joined("\n", parts)


def valid_form(language: Language, form: str) -> str:
    """The form of a valid answer, for the problems of the next turn."""
    return f"write {shape_of(language, form)} with a number of the page"
