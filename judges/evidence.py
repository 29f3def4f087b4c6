"""Checks the evidence for a milestone: a quote that is on the page or in the log, and that is no prompt injection.

A model may be wrong, or may follow instructions on the page. So a flip needs a quote, and a flip whose quote is not
found is rejected. The check does not prove that the quote *means* the milestone. `z_t` steers the agent and never
decides success.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from envs.core.observation import Observation
from envs.observer.action_log import action_log_lines
from envs.observer.page_lines import CONTROL_ROLES, without_cues, without_refs
from envs.observer.page_state import FOCUSED
from envs.observer.page_text import LOG_LINE_CHARS, page_text, plain_page_text
from judges.base import Progress
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import log_lines

MIN_QUOTE_CHARS: Final = 3
"""Minimum number of letters and digits of a quote: a shorter one is on every page."""

LOG_CHARS: Final = 3_000
"""Characters of the log that a large rater is shown: about 40 actions."""

Rejection = Literal[
    "no quote",
    "quote not found",
    "quote talks to the judge",
    "too many quotes",
    "quote lacks the milestone's value",
    "quote shows a control that did not change",
    "quote is an action that failed",
    "quote is an address that did not change",
]

_VALUE: Final = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)(\d[\d/.:,-]+\d|#\d+)(?!\w)")
"""A quoted text, a date or number of three and more characters, or a number after `#`."""

_STATE: Final = r" = \"| \(| (?:checked|unchecked|mixed|selected|pressed|current|expanded|collapsed|on|off)\b"
_CONTROL: Final = re.compile(rf'(?<![\w"])(?:{"|".join(sorted(CONTROL_ROLES))}) "(?:[^"\\]|\\.)*"(?P<state>{_STATE})?')
"""A control as a page line shows it, and the beginning of its value or states."""

_JUDGE_TALK = re.compile(
    r"\b(?:sub-?goals?|milestones?|verdicts?|auto-?raters?|current_complete|next_milestone"
    r"|m\d+\W+(?:is\W+|are\W+|answer\W+)?(?:yes|achieved|complete|done))\b",
    re.IGNORECASE,
)
"""Words of the AutoRater's prompt and answer. A page that uses them to claim an achievement addresses the judge."""


def normalised(text: str) -> str:
    """*text* with every run of white space replaced by one space."""
    return " ".join(text.split())


class QuoteChecker:
    """The sources of quotes at one step: the page and the log of actions, as prompts show them."""

    def __init__(self, progress: Progress) -> None:
        page = page_text(progress.observation)
        shown = (
            page,
            without_refs(page),
            plain_page_text(progress.observation),
            without_cues(page),
            without_refs(without_cues(page)),
            *action_log_lines(progress.history, LOG_CHARS),
            *log_lines(progress.history, LOG_LINE_CHARS),
        )
        self._sources = tuple(normalised(visible(text)) for text in shown)
        task_texts = (progress.instruction, *(milestone.text for milestone in progress.milestones))
        self._task_words = _judge_words(task_texts)

    def rejects(self, quote: str) -> Rejection | None:
        """Why *quote* is no evidence, or None. It must be in one source literally, except for white space.

        A quote with words of the judge's own prompt (`milestone`, `m2`, …) is rejected unless the task uses the word:
        "All milestones achieved" on a page is forged, "Milestones" in a task about them is not.
        """
        quote = normalised(visible(quote))
        if sum(character.isalnum() for character in quote) < MIN_QUOTE_CHARS:
            return "no quote"
        if not any(quote in source for source in self._sources):
            return "quote not found"
        if _judge_words([quote]) - self._task_words:
            return "quote talks to the judge"
        return None


def lacks_value(milestone: str, quote: str) -> bool:
    """Whether *milestone* names values (quoted texts, dates, long numbers, `#2`) and *quote* shows none of them.

    For raters that mistake the page's value for the milestone's: with 'The director is "Farley"' they quote "Ashley",
    with "Section #3 is expanded" the line of Section #2. `#12` does not show `#1`.
    """
    named = (next(filter(None, match.groups())) for match in _VALUE.finditer(milestone))
    values = [value for each in named if (value := normalised(each).casefold())]  # a quoted blank names nothing
    shown = normalised(quote).casefold()
    return bool(values) and not any(_shows(shown, value) for value in values)


def shows_unchanged_control(progress: Progress, quote: str) -> bool:
    """Whether *quote*, a line of the page without refs, has controls without value and state only, and was on the page
    of the turn before as well.

    For raters that take a control for what could be done with it: with "The form is sent" they quote the button Submit,
    with "The year is filled in" an empty field. False if the page before is unknown, or if an action had led to it and
    it was not rated.
    """
    controls = list(_CONTROL.finditer(quote))
    previous = _page_before(progress)
    if previous is None or not controls or any(one["state"] for one in controls):
        return False
    before = without_refs(without_cues(visible(previous.text)))
    return normalised(FOCUSED.sub("", quote)) in normalised(FOCUSED.sub("", before))


def keeps_address(progress: Progress) -> bool:
    """Whether the address of the page is that of the turn before, so that it does not show what was done since.

    For raters that read words in it: with "The reply is sent" they quote `/email-inbox-reply.html`, the start of the
    task. False if the page before is unknown, as for :func:`shows_unchanged_control`.
    """
    previous = _page_before(progress)
    return previous is not None and previous.url == progress.observation.url


def _page_before(progress: Progress) -> Observation | None:
    """The page of the turn before; None if it is unknown, or if an action had led to it and it was not rated."""
    steps = len(progress.history) if progress.step is None else progress.step
    skipped = progress.unrated and steps > 1  # the first page is never rated
    return None if skipped else progress.previous


def _shows(text: str, value: str) -> bool:
    """Whether *text* contains *value*; a number after `#` must not go on in *text*."""
    return value in text if value[0] != "#" else re.search(rf"{re.escape(value)}(?!\d)", text) is not None


def _judge_words(texts: Iterable[str]) -> set[str]:
    """The judge's words in *texts*, regardless of case and plural."""
    return {word.lower().replace("-", "").rstrip("s") for text in texts for word in _JUDGE_TALK.findall(text)}
