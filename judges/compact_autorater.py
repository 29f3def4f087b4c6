"""The AutoRater by a small model: one milestone at a time, `no` or `yes:` with a quote.

It is trained on exactly the texts of :func:`check_text` and :func:`check_answer`; :func:`proof_of` finds the quotes to
learn from. The page comes last, so that no page text can imitate a line of ours; whatever is put on one line has its
line breaks folded first. A claim counts only with evidence, as from any model (:mod:`judges.evidence`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from envs.core.past_actions import PastAction
from envs.core.record import storable
from envs.core.trace import Flip
from envs.observer.page_focus import Matcher, focused_lines, interest
from envs.observer.page_lines import CUT, pieces
from envs.observer.page_text import LOG_LINE_CHARS, one_line, short_head, within_site
from judges.autorater import RaterSettings, without_asking
from judges.autorater_prompt import key
from judges.base import Progress, Rated
from judges.evidence import Rejection, Witness, normalised
from judges.ratings import make_rating
from judges.relevance import changed_lines, without_refs
from models.asking import ask_text
from models.base import ChatModel, ChatReply, ChatRequest, ModelInvalidAnswer
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import PromptText, cut, folded, joined, log_lines, message, on_one_line, page, words

CHECK_PAGE_CHARS: Final = 900
"""What is shown of the page."""
INSTRUCTION_CHARS: Final = 600
LINE_CHARS: Final = 300
"""Longest milestone or address."""
DONE_CHARS: Final = 160
"""Longest action shown."""
CHECK_HISTORY: Final = 4
"""Last actions shown."""
QUOTE_CHARS: Final = 80
"""Longest quote learned."""
MAX_TOKENS: Final = 96
"""Of an answer: a quote in tokens of a character each."""

_NEW = 1.5
"""Weight of the last action, and of what was not on the page before it, as a proof of what that action reached."""
_ADDRESS = 0.1
"""Of the address: it names what a page is for, whatever is done there."""
_YES = re.compile(r"yes: (\S[^\n]*)")
_OPTIONS = re.compile(rf' options:(?: (?:{CUT}|"(?:[^"\\]|\\.)*"))*')
"""What a list offers, in a page line: that something can be chosen does not show that it is."""


def check_text(progress: Progress, index: int) -> str:
    """The whole prompt about the milestone with 0-based *index*; equal arguments give equal text."""
    return _check_prompt(progress, index).text


def _check_prompt(progress: Progress, index: int) -> PromptText:
    seen = progress.observation
    return joined(
        "\n",
        [
            words("Check: ") + on_one_line(progress.milestones[index].text, LINE_CHARS),
            words("Goal: ") + on_one_line(progress.instruction, INSTRUCTION_CHARS),
            *(words("Done: ") + on_one_line(one, DONE_CHARS) for one in _log(progress.history[-CHECK_HISTORY:])),
            words("At: ") + on_one_line(within_site(seen.url), LINE_CHARS),
            words("Page:"),
            page([*short_head(seen), *_page(progress, index)]),
        ],
    )


def check_answer(quote: str | None) -> str:
    """The answer that :func:`parse_check` reads *quote* from; None means that the milestone is not achieved.

    Raises ValueError for a quote that is empty, longer than `QUOTE_CHARS`, or not one line with single blanks.
    """
    if quote is None:
        return "no"
    if not 0 < len(quote) <= QUOTE_CHARS or quote != normalised(quote):
        raise ValueError(f"a quote is one line of 1 to {QUOTE_CHARS} characters, not {quote!r}")
    return f"yes: {quote}"


def parse_check(text: str) -> str | None:
    """The quote of a `yes: QUOTE`, None for `no`. Raises :class:`models.base.ModelInvalidAnswer` for anything else."""
    answer = text.strip()
    if answer == "no":
        return None
    if (match := _YES.fullmatch(answer)) is None:
        said = one_line(storable(text), 120)
        raise ModelInvalidAnswer(f"the rater must answer `no` or `yes:` with a quote, it said {said!r}")
    return match[1]


def proof_of(progress: Progress, index: int) -> str | None:
    """What an honest `yes` to :func:`check_text` would quote; None where nothing shown there can be quoted for it.

    Of the lines shown, the one that shares most with the milestone's text (:class:`envs.observer.page_focus.Matcher`),
    or of a long one the part that does. The last action and what is new on the page count more, the address hardly;
    where two count alike an action goes before the page, and a later before an earlier one. Actions that failed and
    quotes that :class:`judges.evidence.Witness` refuses prove nothing. Where no line speaks of the milestone, as a
    calendar does not say that it is one, it is the first thing that the last action brought to the page. Whether the
    milestone *is* achieved must be known already: words that fit stand on other pages, too.
    """
    shown = _provable(progress, index)
    matcher = Matcher([line.text for line in shown], interest((progress.milestones[index].text, 1.0)))
    witness = Witness(progress)
    best, proof = 0.0, None
    for line in shown:
        quote = max(_quotes(line.text), key=matcher.match)
        worth = line.weight * matcher.match(quote)
        if worth > best and witness.rejects(quote) is None:
            best, proof = worth, quote
    return proof if proof is not None else _brought(shown, witness)


def _brought(shown: Sequence[_Shown], witness: Witness) -> str | None:
    """The first part of a line that the last action brought to the page, of those that may be quoted."""
    quotes = (_quotes(line.text)[0] for line in shown if line.weight == _NEW and not line.is_action)
    return next((quote for quote in quotes if witness.rejects(quote) is None), None)


def _log(past: Sequence[PastAction]) -> list[str]:
    return [cut(folded(line), DONE_CHARS) for line in log_lines(past, LOG_LINE_CHARS)]


def _page(progress: Progress, index: int) -> list[str]:
    sought = interest((progress.milestones[index].text, 1.0), (progress.instruction, 0.4))
    return focused_lines(visible(progress.observation.text), sought, CHECK_PAGE_CHARS)


class _Shown(NamedTuple):
    """A line that may hold a proof."""

    text: str
    weight: float
    is_action: bool = False


def _provable(progress: Progress, index: int) -> list[_Shown]:
    """The lines of :func:`check_text` that may hold a proof, what goes first first; the parts of a cut line apart."""
    seen, before = progress.observation, progress.previous
    shown_actions = progress.history[-CHECK_HISTORY:]
    actions = [
        _Shown(line, _NEW if place == 0 else 1.0, is_action=True)
        for place, (past, line) in enumerate(zip(reversed(shown_actions), reversed(_log(shown_actions)), strict=True))
        if past.carried_out
    ]
    dialog = [] if seen.dialog is None else [_Shown(one_line(seen.dialog.message, 240), _NEW)]
    new = frozenset() if before is None else frozenset(changed_lines(visible(before.text), visible(seen.text)))
    page = [
        _Shown(_OPTIONS.sub(CUT, line), _NEW if without_refs(line) in new else 1.0) for line in _page(progress, index)
    ]
    lines = (*actions, *dialog, *page, _Shown(within_site(seen.url), _ADDRESS))
    return [line._replace(text=part) for line in lines for part in line.text.split(CUT)]


def _quotes(line: str) -> list[str]:
    """What may be quoted of *line*, the better first: all of it where it is short, else runs of its controls and
    texts, short ones first, else as many words as a quote holds, from every word on."""
    if len(whole := normalised(line)) <= QUOTE_CHARS:
        return [whole]
    parts = pieces(whole)
    runs = _runs([part.before + part.text for part in parts]) if any(part.is_control for part in parts) else []
    words = whole.split()
    return sorted(runs, key=len) or [_head(words[start:]) for start in range(len(words))]


def _runs(parts: Sequence[str]) -> list[str]:
    """Every run of consecutive *parts* that a quote holds."""
    found: list[str] = []
    for start in range(len(parts)):
        text = ""
        for part in parts[start:]:
            text += part
            if len(run := normalised(text)) > QUOTE_CHARS:
                break
            found.append(run)
    return found


def _head(words: Sequence[str]) -> str:
    """As many of the first words as a quote holds."""
    text = ""
    for word in words:
        if text and len(text) + 1 + len(word) > QUOTE_CHARS:
            break
        text = f"{text} {word}".strip()
    return text[:QUOTE_CHARS]


class Answer(NamedTuple):
    """What became of one question."""

    place: int
    """0-based number of the milestone."""
    reply: ChatReply
    quote: str | None
    """None: not achieved, says the model."""
    rejected: Rejection | None
    """Why the quote is no evidence."""

    @property
    def achieved(self) -> bool:
        return self.quote is not None and self.rejected is None

    def told(self) -> str:
        if self.rejected is not None:
            return f"{key(self.place)}: refused, {self.rejected}"
        return f"{key(self.place)}: {'yes' if self.achieved else 'no'}"


class CompactAutoRater:
    """Asks a small *model* about the first open milestone, and after every one that is achieved about the next.

    So milestones are reached in the order of the plan only. Evidence, `rejected` and errors are those of
    :class:`judges.autorater.ModelAutoRater`, and with the budget `auto` the model is asked as rarely. It never thinks.
    """

    def __init__(self, model: ChatModel, settings: RaterSettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or RaterSettings()
        self.rejected = 0
        """Claims refused for want of evidence, over the life of this rater."""
        self._model = model

    async def rate(self, progress: Progress) -> Rated:
        """Raises ValueError where `z` and the milestones differ in number, else :class:`models.base.ModelError`."""
        settled = without_asking(progress, self.settings)
        return settled if settled is not None else _rated(progress, await self._answers(progress))

    async def _answers(self, progress: Progress) -> list[Answer]:
        """One for each open milestone, up to the first that is not achieved."""
        witness = Witness(progress)
        answers: list[Answer] = []
        for index, known in enumerate(progress.z):
            if known:
                continue
            answers.append(await self._ask(progress, index, witness))
            if not answers[-1].achieved:
                break
        return answers

    async def _ask(self, progress: Progress, index: int, witness: Witness) -> Answer:
        request = ChatRequest(
            messages=(message("user", _check_prompt(progress, index)),),
            max_tokens=MAX_TOKENS,
            deadline_s=self.settings.deadline_s,
        )
        asked = await ask_text(self._model, request, parse_check)
        rejected = None if asked.answer is None else witness.rejects(asked.answer)
        self.rejected += rejected is not None
        return Answer(index, asked.reply, asked.answer, rejected)


def _rated(progress: Progress, answers: Sequence[Answer]) -> Rated:
    proven = {answer.place: storable(normalised(answer.quote or "")) for answer in answers if answer.achieved}
    rating = make_rating(
        progress.z,
        tuple(index in proven for index in range(len(progress.z))),
        tuple(
            Flip(milestone=progress.milestones[index].id, achieved=True, evidence=quote)
            for index, quote in proven.items()
        ),
        reason="; ".join(answer.told() for answer in answers),
        source="model",
    )
    return Rated(rating, tuple(answer.reply for answer in answers))
