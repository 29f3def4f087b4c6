"""AutoRater with a small model: one milestone at a time, answered by `no` or `yes:` with a quote.

The model is trained on exactly the texts of :func:`check_text` and :func:`check_answer`; :func:`proof_of` selects the
quotes for training. The page comes last, so that no page text can imitate a line of the prompt; line breaks of other
texts are folded. A claim counts only with evidence, as for any model (:mod:`judges.evidence`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from envs.core.observation import Observation
from envs.core.past_actions import PastAction
from envs.core.record import storable
from envs.observer.page_focus import Matcher, focused_lines, interest
from envs.observer.page_lines import CUT, pieces, without_cues
from envs.observer.page_text import LOG_LINE_CHARS, one_line, short_head, within_site
from judges.base import Progress
from judges.evidence import QuoteChecker, normalised
from judges.relevance import changed_lines, with_masked_refs
from judges.stepwise_autorater import Claim, StepwiseAutoRater
from models.asking import ask_text
from models.base import ChatRequest, ModelInvalidAnswer
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import PromptText, cut, folded, joined, log_lines, message, on_one_line, page, words

CHECK_PAGE_CHARS: Final = 900
"""Length of the page text in the prompt."""
INSTRUCTION_CHARS: Final = 600
LINE_CHARS: Final = 300
"""Longest milestone or address."""
DONE_CHARS: Final = 160
"""Longest action shown."""
CHECK_HISTORY: Final = 4
"""Latest actions shown."""
QUOTE_CHARS: Final = 80
"""Longest quote in training data."""
MAX_TOKENS: Final = 96
"""Completion limit: enough for a quote with one token a character."""

_NEW = 1.5
"""Weight of the last action, and of page lines that are new after it, as a proof."""
_ADDRESS = 0.1
"""Weight of the address: it names the purpose of a page, not what was done there."""
_YES = re.compile(r"yes: (\S[^\n]*)")
_OPTIONS = re.compile(rf' options:(?: (?:{CUT}|"(?:[^"\\]|\\.)*"))*')
"""The options of a list in a page line; an option that can be chosen proves nothing."""


def check_text(progress: Progress, index: int) -> str:
    """Returns the prompt for the milestone with 0-based *index*; equal arguments give equal text."""
    return _check_prompt(progress, index).text


def _check_prompt(progress: Progress, index: int) -> PromptText:
    observation = progress.observation
    return joined(
        "\n",
        [
            words("Check: ") + on_one_line(progress.milestones[index].text, LINE_CHARS),
            words("Goal: ") + on_one_line(progress.instruction, INSTRUCTION_CHARS),
            *(words("Done: ") + on_one_line(line, DONE_CHARS) for line in _log(progress.history[-CHECK_HISTORY:])),
            words("At: ") + on_one_line(within_site(observation.url), LINE_CHARS),
            words("Page:"),
            page([*short_head(observation), *_page(progress, index)]),
        ],
    )


def check_answer(quote: str | None) -> str:
    """Returns the answer that :func:`parse_check` reads *quote* from; None: the milestone is not achieved.

    Raises ValueError for a quote that is empty, longer than `QUOTE_CHARS`, or not one line with single blanks.
    """
    if quote is None:
        return "no"
    if not 0 < len(quote) <= QUOTE_CHARS or quote != normalised(quote):
        raise ValueError(f"a quote is one line of 1 to {QUOTE_CHARS} characters, not {quote!r}")
    return f"yes: {quote}"


def parse_check(text: str) -> str | None:
    """Parses `yes: QUOTE` to the quote, `no` to None. Raises :class:`models.base.ModelInvalidAnswer` for other
    texts."""
    answer = text.strip()
    if answer == "no":
        return None
    if (match := _YES.fullmatch(answer)) is None:
        raise ModelInvalidAnswer(
            f"the rater must answer `no` or `yes:` with a quote, not {one_line(storable(text), 120)!r}"
        )
    return match[1]


def proof_of(progress: Progress, index: int) -> str | None:
    """Returns the quote for a correct `yes` to :func:`check_text`; None where the prompt holds no evidence.

    The quote is the line, or the part of a long line, with the highest similarity to the milestone's text
    (:class:`envs.observer.page_focus.Matcher`). The last action and new page lines weigh more, the address little; on a
    tie actions come before the page, and later actions before earlier ones. Actions that were not carried out and
    quotes that :class:`judges.evidence.QuoteChecker` rejects are excluded. Where no line matches, the quote is the
    first part that the last action added to the page. The caller must know that the milestone is achieved: matching
    words also stand on other pages.
    """
    shown = _provable(progress, index)
    matcher = Matcher([line.text for line in shown], interest((progress.milestones[index].text, 1.0)))
    witness = QuoteChecker(progress)
    best, proof = 0.0, None
    for line in shown:
        quote = max(_quotes(line.text), key=matcher.match)
        worth = line.weight * matcher.match(quote)
        if worth > best and witness.rejects(quote) is None:
            best, proof = worth, quote
    return proof if proof is not None else _first_new(shown, witness)


def _first_new(shown: Sequence[_Shown], witness: QuoteChecker) -> str | None:
    """Returns the first quotable part of a page line that is new after the last action."""
    quotes = (_quotes(line.text)[0] for line in shown if line.weight == _NEW and not line.is_action)
    return next((quote for quote in quotes if witness.rejects(quote) is None), None)


def _log(past: Sequence[PastAction]) -> list[str]:
    return [cut(folded(line), DONE_CHARS) for line in log_lines(past, LOG_LINE_CHARS)]


def _page(progress: Progress, index: int) -> list[str]:
    terms = interest((progress.milestones[index].text, 1.0), (progress.instruction, 0.4))
    return focused_lines(_text(progress.observation), terms, CHECK_PAGE_CHARS)


def _text(observation: Observation) -> str:
    return without_cues(visible(observation.text))


class _Shown(NamedTuple):
    """A line that may hold a proof."""

    text: str
    weight: float
    is_action: bool = False


def _provable(progress: Progress, index: int) -> list[_Shown]:
    """Returns the lines of :func:`check_text` that may hold a proof, by precedence; a cut line is split into parts."""
    now, before = progress.observation, progress.previous
    shown_actions = progress.history[-CHECK_HISTORY:]
    actions = [
        _Shown(line, _NEW if place == 0 else 1.0, is_action=True)
        for place, (past, line) in enumerate(zip(reversed(shown_actions), reversed(_log(shown_actions)), strict=True))
        if past.carried_out
    ]
    dialog = [] if now.dialog is None else [_Shown(one_line(now.dialog.message, 240), _NEW)]
    new = frozenset() if before is None else frozenset(changed_lines(_text(before), _text(now)))
    page = [
        _Shown(_OPTIONS.sub(CUT, line), _NEW if with_masked_refs(line) in new else 1.0)
        for line in _page(progress, index)
    ]
    lines = (*actions, *dialog, *page, _Shown(within_site(now.url), _ADDRESS))
    return [line._replace(text=part) for line in lines for part in line.text.split(CUT)]


def _quotes(line: str) -> list[str]:
    """Returns the candidate quotes of *line*, best first: a short line itself; else runs of its controls and texts,
    short ones first; else the words that fit, from every word on."""
    if len(text := normalised(line)) <= QUOTE_CHARS:
        return [text]
    parts = pieces(text)
    runs = _runs([part.before + part.text for part in parts]) if any(part.is_control for part in parts) else []
    words = text.split()
    return sorted(runs, key=len) or [_head(words[start:]) for start in range(len(words))]


def _runs(parts: Sequence[str]) -> list[str]:
    """Returns every run of consecutive *parts* that fits into a quote."""
    runs: list[str] = []
    for start in range(len(parts)):
        text = ""
        for part in parts[start:]:
            text += part
            if len(run := normalised(text)) > QUOTE_CHARS:
                break
            runs.append(run)
    return runs


def _head(words: Sequence[str]) -> str:
    """Returns the first words that fit into a quote."""
    text = ""
    for word in words:
        if text and len(text) + 1 + len(word) > QUOTE_CHARS:
            break
        text = f"{text} {word}".strip()
    return text[:QUOTE_CHARS]


class CompactAutoRater(StepwiseAutoRater):
    """Asks a small *model* that was trained on these texts. The model gets no thinking tokens."""

    async def claim(self, progress: Progress, index: int) -> Claim:
        request = ChatRequest(
            messages=(message("user", _check_prompt(progress, index)),),
            max_tokens=MAX_TOKENS,
            deadline_s=self.settings.deadline_s,
        )
        answered = await ask_text(self.model, request, parse_check)
        return Claim(answered.answer, answered.reply)
