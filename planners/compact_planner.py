"""Milestones from a small model: a few short lines in, one milestone a line out, or `none`: no plan is needed.

What :mod:`planners.prompts` explains in a page of rules, a small model has learned: it is trained on exactly the
texts of :func:`plan_text` and :func:`plan_answer`. The page comes last, so that no page text can imitate a line of
ours; whatever is put on one line has its line breaks folded first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envs.core.record import storable
from envs.observer.page_focus import focused_lines, interest
from envs.observer.page_text import LOG_LINE_CHARS, one_line, short_head, within_site
from models.asking import ask_text
from models.base import ChatModel, ChatRequest, ModelInvalidAnswer
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import PromptText, joined, log_lines, message, number, on_one_line, page, words
from planners.base import Plan, Situation
from planners.model_planner import MAX_MILESTONE_CHARS, PlannerSettings, cleaned, comparable, numbered

PLAN_PAGE_CHARS: Final = 600
"""What is shown of the page: a plan follows from the task, the page only says where it begins."""
INSTRUCTION_CHARS: Final = 600
LINE_CHARS: Final = 300
"""Longest anchor or address."""
DETAIL_CHARS: Final = 160
"""Longest trouble or action."""
PLAN_HISTORY: Final = 3
"""Last actions shown, for a re-plan."""
TOKENS_PER_MILESTONE: Final = 100
"""Allowed to an answer; a milestone takes about 15, one that lists codes a token for each of their characters."""
NO_PLAN: Final = "none"
"""The answer where one look is enough, or nothing is left but to go on."""


def plan_text(situation: Situation, count: int) -> str:
    """The whole prompt that asks for *count* milestones; equal arguments give equal text.

    `Have:` (an anchor), `ReplanTrigger:` and `Done:` (an action) stand only in the prompt of a re-plan.
    """
    return _plan_prompt(situation, count).text


def _plan_prompt(situation: Situation, count: int) -> PromptText:
    task = on_one_line(situation.instruction, INSTRUCTION_CHARS)
    lines = [joined("", (words("Plan "), number(count), words(": "), task))]
    lines += [words("Have: ") + on_one_line(anchor.text, LINE_CHARS) for anchor in situation.anchors]
    if situation.cause != "initial":
        trouble = f"{situation.cause.replace('_', ' ')}: {situation.detail}"
        lines.append(words("Trouble: ") + on_one_line(trouble, DETAIL_CHARS))
        done = log_lines(situation.history[-PLAN_HISTORY:], LOG_LINE_CHARS)
        lines += [words("Done: ") + on_one_line(line, DETAIL_CHARS) for line in done]
    seen = situation.observation
    shown = focused_lines(visible(seen.text), interest((situation.instruction, 1.0)), PLAN_PAGE_CHARS)
    at = words("At: ") + on_one_line(within_site(seen.url), LINE_CHARS)
    return joined("\n", [*lines, at, words("Page:"), page([*short_head(seen), *shown])])


def plan_answer(milestones: Sequence[str]) -> str:
    """The answer that :func:`parse_plan` reads *milestones* from: one a line, `NO_PLAN` for no milestones.

    Raises ValueError for an empty milestone, and for one that says `NO_PLAN`.
    """
    lines = [cleaned(text) for text in milestones]
    if not all(comparable(line) not in ("", NO_PLAN) for line in lines):
        raise ValueError(f"the milestones of a plan say something, none of them empty, not {list(milestones)!r}")
    return "\n".join(lines) or NO_PLAN


def parse_plan(text: str, count: int, taken: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The first *count* milestones of an answer, one a line, cleaned; fewer where it holds fewer, none for `NO_PLAN`.

    Lines that say nothing, that repeat an earlier one or one of *taken* (:func:`planners.model_planner.comparable`
    texts), and those longer than a milestone may be are dropped. Raises :class:`models.base.ModelInvalidAnswer` if none
    is left.
    """
    if comparable(text) == NO_PLAN:
        return ()
    found: dict[str, str] = {}
    for line in map(cleaned, text.splitlines()):
        key = comparable(line)
        if key and key not in taken and len(line) <= MAX_MILESTONE_CHARS:
            found.setdefault(key, line)
    if not found:
        raise ModelInvalidAnswer(f"the planner gave no new milestone, it said {one_line(storable(text), 120)!r}")
    return tuple(found.values())[:count]


class CompactPlanner:
    """Up to `k` milestones by a small *model* that was trained for it; none where it says that none are needed.

    Keeps anchors and ids as :class:`planners.model_planner.ModelPlanner` does. It differs in that fewer milestones than
    asked for make a plan, too, that no examples are shown, and that the model never thinks: of *settings* only `k` and
    `deadline_s` count. Pictures are not sent.
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
        asked = await ask_text(self._model, request, lambda text: parse_plan(text, count, taken))
        return Plan(milestones=situation.anchors + numbered(situation, asked.answer), reply=asked.reply)
