"""What counts as evidence for a milestone: words that are really there, and that do not talk to the judge.

A model may be wrong or may have obeyed the page. So a flip needs a quote, the quote is looked up, and a flip whose
quote is not found is rejected. What this does not prove is that the quote *means* the milestone: `z_t` steers the
agent and never decides success.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from envs.observer.page_text import LOG_LINE_CHARS, page_text
from judges.base import Progress
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import log_lines

MIN_QUOTE_CHARS: Final = 3
"""Letters and digits that a quote must hold: less than this is found on every page."""

Rejection = Literal["no quote", "quote not found", "quote talks to the judge"]

_JUDGE_TALK = re.compile(
    r"\b(?:sub-?goals?|milestones?|verdicts?|auto-?raters?|current_complete|next_milestone"
    r"|m\d+\W+(?:is\W+|are\W+|answer\W+)?(?:yes|achieved|complete|done))\b",
    re.IGNORECASE,
)
"""Words of our own prompt and answer. A page that uses them to claim an achievement speaks to us, not about itself."""


def normalised(text: str) -> str:
    """*text* with every run of white space as one space, nothing else changed."""
    return " ".join(text.split())


class Witness:
    """Everything of one step that may be quoted: the page and the log of actions, as prompts show them."""

    def __init__(self, progress: Progress) -> None:
        told = (page_text(progress.observation), *log_lines(progress.history, LOG_LINE_CHARS))
        self._sources = tuple(normalised(visible(text)) for text in told)
        ours = (progress.instruction, *(milestone.text for milestone in progress.milestones))
        self._our_words = _judge_words(ours)

    def rejects(self, quote: str) -> Rejection | None:
        """Why *quote* is no evidence, or None. It must stand in one place literally, white space aside.

        A quote with words of the judge's own language (`milestone`, `m2`, …) is refused unless the task itself uses
        the word: "All milestones achieved" on a page is a forgery, "Milestones" in a task about them is not.
        """
        quote = normalised(visible(quote))
        if sum(character.isalnum() for character in quote) < MIN_QUOTE_CHARS:
            return "no quote"
        if not any(quote in source for source in self._sources):
            return "quote not found"
        if _judge_words([quote]) - self._our_words:
            return "quote talks to the judge"
        return None


def _judge_words(texts: Iterable[str]) -> set[str]:
    """The judge's words in *texts*, case and plural aside."""
    return {word.lower().replace("-", "").rstrip("s") for text in texts for word in _JUDGE_TALK.findall(text)}
