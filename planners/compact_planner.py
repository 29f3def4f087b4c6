"""Planner with a small model: a few short lines in, one milestone a line out, or `none` where no plan is needed.

The model is trained on exactly the texts of :func:`plan_text` and :func:`plan_answer` and needs none of the rules of
:mod:`planners.prompts`. The page comes last, so that no page text can imitate a line of the prompt; line breaks of
other texts are folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envs.core.record import storable
from envs.observer.page_focus import focused_lines, interest
from envs.observer.page_lines import without_cues
from envs.observer.page_text import LOG_LINE_CHARS, one_line, short_head, within_site
from models.asking import ask_text
from models.base import ChatModel, ChatRequest, ModelInvalidAnswer
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import PromptText, joined, log_lines, message, number, on_one_line, page, words
from planners.base import Plan, Situation
from planners.model_planner import MAX_MILESTONE_CHARS, PlannerSettings, cleaned, comparable, numbered

PLAN_PAGE_CHARS: Final = 600
"""Length of the page text in the prompt: the plan follows from the task, the page shows only where it begins."""
INSTRUCTION_CHARS: Final = 600
LINE_CHARS: Final = 300
"""Longest anchor or address."""
DETAIL_CHARS: Final = 160
"""Longest trigger or action."""
PLAN_HISTORY: Final = 3
"""Latest actions shown for a re-plan."""
TOKENS_PER_MILESTONE: Final = 100
"""Completion limit per milestone; most take about 15 tokens, a list of codes one token a character."""
NO_PLAN: Final = "none"
"""The answer where the task needs no plan."""


def plan_text(situation: Situation, count: int) -> str:
    """Returns the prompt for *count* milestones; equal arguments give equal text.

    The lines `Have:` (an anchor), `Trouble:` (the trigger) and `Done:` (an action) are part of a re-plan only.
    """
    return _plan_prompt(situation, count).text


def _plan_prompt(situation: Situation, count: int) -> PromptText:
    task = on_one_line(situation.instruction, INSTRUCTION_CHARS)
    lines = [joined("", (words("Plan "), number(count), words(": "), task))]
    lines += [words("Have: ") + on_one_line(anchor.text, LINE_CHARS) for anchor in situation.anchors]
    if situation.cause != "initial":
        trigger = f"{situation.cause.replace('_', ' ')}: {situation.detail}"
        lines.append(words("Trouble: ") + on_one_line(trigger, DETAIL_CHARS))
        done = log_lines(situation.history[-PLAN_HISTORY:], LOG_LINE_CHARS)
        lines += [words("Done: ") + on_one_line(line, DETAIL_CHARS) for line in done]
    observation = situation.observation
    text = without_cues(visible(observation.text))
    shown = focused_lines(text, interest((situation.instruction, 1.0)), PLAN_PAGE_CHARS)
    at = words("At: ") + on_one_line(within_site(observation.url), LINE_CHARS)
    return joined("\n", [*lines, at, words("Page:"), page([*short_head(observation), *shown])])


def plan_answer(milestones: Sequence[str]) -> str:
    """Returns the answer that :func:`parse_plan` reads *milestones* from: one a line, `NO_PLAN` for no milestones.

    Raises ValueError for a milestone that is empty or equals `NO_PLAN`.
    """
    lines = [cleaned(text) for text in milestones]
    if not all(comparable(line) not in ("", NO_PLAN) for line in lines):
        raise ValueError(f"milestones must not be empty or {NO_PLAN!r}: {list(milestones)!r}")
    return "\n".join(lines) or NO_PLAN


def parse_plan(text: str, count: int, taken: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Parses at most *count* milestones, one a line, cleaned; none for `NO_PLAN`.

    Lines that are empty, too long, or repeat an earlier line or one of *taken*
    (:func:`planners.model_planner.comparable` texts) are dropped. Raises :class:`models.base.ModelInvalidAnswer` if no
    line is left.
    """
    if comparable(text) == NO_PLAN:
        return ()
    milestones: dict[str, str] = {}
    for line in map(cleaned, text.splitlines()):
        key = comparable(line)
        if key and key not in taken and len(line) <= MAX_MILESTONE_CHARS:
            milestones.setdefault(key, line)
    if not milestones:
        raise ModelInvalidAnswer(f"the planner gave no new milestone: {one_line(storable(text), 120)!r}")
    return tuple(milestones.values())[:count]


class CompactPlanner:
    """Plans up to `k` milestones with a small *model* that was trained for it; none where it answers `NO_PLAN`.

    Anchors and ids are kept as by :class:`planners.model_planner.ModelPlanner`. Unlike there, a plan may have fewer
    milestones than requested, no examples or pictures are sent, and the model gets no thinking tokens: of *settings*
    only `k` and `deadline_s` are used.
    """

    def __init__(self, model: ChatModel, settings: PlannerSettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or PlannerSettings()
        self._model = model

    async def plan(self, situation: Situation) -> Plan:
        """Raises :class:`models.base.ModelError`."""
        count = max(1, self.settings.k - len(situation.anchors))
        request = ChatRequest(
            messages=(message("user", _plan_prompt(situation, count)),),
            max_tokens=TOKENS_PER_MILESTONE * count,
            deadline_s=self.settings.deadline_s,
        )
        redo = situation.cause == "milestone_lost"
        taken = frozenset(() if redo else (comparable(anchor.text) for anchor in situation.anchors))
        answered = await ask_text(self._model, request, lambda text: parse_plan(text, count, taken))
        return Plan(milestones=situation.anchors + numbered(situation, answered.answer), reply=answered.reply)
