"""The judge `orm:MODEL`: an outcome reward model that was trained in the way of WebRL (Qi et al. 2025).

Such a model is asked for one word, YES or NO, after the intent, the actions and the last page. WebRL's code takes
`P(YES) / (P(YES) + P(NO))` of the next token and counts 0.5 and more as a success; so does this judge where the model
has both probabilities.

The parts of the prompt, their order and their headings are those of WebRL's code. The system message is Mira's
own, the page is Mira's text in place of WebRL's HTML, and an action has one line. The system message with which a
checkpoint was trained may be declared beside its weights: `{"judge_system": "…"}` in `mira.json`.

The prompt has no fences, because the model was trained without them. Actions and intent have one line each, and the
page comes last, so that none of them can begin another part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal, NamedTuple, NoReturn

from envs.core.action_languages import PROGRAM
from envs.core.actions import Stop
from envs.core.errors import BadInput
from envs.core.past_actions import PastAction
from envs.core.record import storable
from envs.observer.page_text import one_line, plain_page_text
from judges.autorater import RaterSettings
from judges.base import Ending, Verdict
from judges.entry import JudgeEntry
from judges.outcome import LOG_CHARS, JudgeSettings, latest_lines
from models.asking import ask_text, charge, complete
from models.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    ModelError,
    ModelInvalidAnswer,
    ModelTruncated,
    Usage,
)
from models.local.declarations import declarations
from models.prompting.prompt_text import PromptText, joined, message, on_one_line, own, page, words
from models.specs import checkpoint_folders
from models.thinking import without_thoughts
from models.transport import added

SYSTEM: Final = """\
You evaluate an agent that navigates websites to complete a task for a person. From the person's intent, the agent's \
actions and the final state of the screen, decide whether the agent has completed the task. Answer with YES or NO."""
DECLARED_SYSTEM: Final = "judge_system"
"""Key of `mira.json`: the system message with which the checkpoint was trained."""
INTENT_CHARS: Final = 6_000
"""Longest intent; a longer one is cut."""
ACTION_CHARS: Final = 1_000
"""Longest action; a longer one is cut."""
MAX_TOKENS: Final = 8
"""Completion limit: enough for a word with one token a character."""

Word = Literal["YES", "NO"]

_OTHER: Final[dict[Word, Word]] = {"YES": "NO", "NO": "YES"}
_GRAMMAR: Final = 'root ::= "YES" | "NO"'
_FORCED: Final[dict[Word, str]] = {"YES": 'root ::= "YES"', "NO": 'root ::= "NO"'}
_ANSWER = re.compile(r"""["'*`]*(yes|no)["'*`.!]*""", re.IGNORECASE)


class _Judged(NamedTuple):
    word: Word
    """The verdict."""
    score: float | None
    """Probability of YES, in [0, 1]."""
    reply: ChatReply


def read_word(text: str) -> Word:
    """Reads an answer that is the word YES or NO alone, after thoughts in tags, if any. Case, quotes, asterisks and a
    full stop do not matter. Raises :class:`models.base.ModelInvalidAnswer` for any other text."""
    answer = without_thoughts(text).strip()
    match = _ANSWER.fullmatch(answer)
    if match is None:
        raise ModelInvalidAnswer(f"the outcome model must answer YES or NO, not {one_line(storable(answer), 120)!r}")
    return "YES" if match[1].upper() == "YES" else "NO"


def render(ending: Ending, system: str | None = None) -> tuple[Message, ...]:
    """The messages. *system*: the declared system message; None: `SYSTEM`. Equal arguments give equal messages.

    The latest actions are shown in at most `LOG_CHARS` characters, earlier ones are counted.
    """
    parts = (
        words("The User Intent:\n") + on_one_line(ending.instruction, INTENT_CHARS),
        words("Action History:\n") + joined("\n", _history(ending)),
        words("The Current Screenshot:\n") + page(plain_page_text(ending.observation).split("\n")),
    )
    rules = words(SYSTEM) if system is None else own(system)
    return message("system", rules), message("user", joined("\n\n", parts))


def _history(ending: Ending) -> Iterator[PromptText]:
    lines = [_action_line(past) for past in ending.history]
    stopped = bool(ending.history) and isinstance(ending.history[-1].action, Stop)
    if ending.answer is not None and not stopped:
        lines.append(PROGRAM.show(Stop(answer=ending.answer)))
    yield from (on_one_line(line, ACTION_CHARS) for line in latest_lines(lines, LOG_CHARS))


def _action_line(past: PastAction) -> str:
    """An action as a WebRL policy writes it: `# Element: button "Pay"; do(action="Click", element="12")`."""
    written = PROGRAM.show(past.action)
    named = f"{past.target.role} {past.target.name}".strip() if past.target is not None else ""
    return f"# Element: {named}; {written}" if named else written


class OrmJudge:
    """Asks *model* for YES or NO. An answer that is neither raises an error; it never counts as a failure."""

    def __init__(self, model: ChatModel, settings: JudgeSettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or JudgeSettings()
        self._model = model
        self._system = _declared_system(model.spec)

    async def judge(self, ending: Ending) -> Verdict:
        """Raises :class:`models.base.ModelError`: ModelInvalidAnswer where no answer is YES or NO.

        `Verdict.score` is the probability of YES. With a model that returns token ids and takes grammars (`local:`,
        `vllm:`) it is `P(YES) / (P(YES) + P(NO))`, which also decides. Other models with log-probabilities give that of
        their own word only; the rest counts for the other word. None where that is less than half, and without
        log-probabilities: then the word decides alone.
        """
        judged = await self._judged(ending)
        return Verdict(
            success=judged.word == "YES",
            reason="an outcome model said so" if judged.score is None else f"probability of YES {judged.score:.3f}",
            reply=judged.reply,
            score=judged.score,
        )

    async def _judged(self, ending: Ending) -> _Judged:
        request = ChatRequest(
            messages=render(ending, self._system),
            thinking_tokens=0,
            max_tokens=MAX_TOKENS,
            grammar=_GRAMMAR,
            logprobs=True,
            deadline_s=self.settings.deadline_s,
        )
        answered = await ask_text(self._model, request, read_word)
        word, reply = answered.answer, answered.reply
        own_log = _log_probability(reply)
        if own_log is None:
            return _Judged(word, None, reply)
        if reply.completion_token_ids is not None:
            reply, other_log = await self._other(request, word, reply)
            if other_log is not None:
                share = _share(own_log, other_log)
                score = share if word == "YES" else 1 - share
                return _Judged("YES" if score >= 0.5 else "NO", score, reply)
        share = math.exp(own_log)
        if share < 0.5:
            return _Judged(word, None, reply)
        return _Judged(word, share if word == "YES" else 1 - share, reply)

    async def _other(self, request: ChatRequest, word: Word, first: ChatReply) -> tuple[ChatReply, float | None]:
        """*first* with the usage of the second call, and the log-probability of the word that was not said; None where
        the model does not follow a grammar."""
        other = _OTHER[word]
        left = max(1.0, request.deadline_s - first.seconds)
        forced = replace(request, grammar=_FORCED[other], deadline_s=left)
        try:
            reply = await complete(self._model, forced)
        except (ModelTruncated, ModelInvalidAnswer) as error:
            return (first if error.usage is None else _with(first, error.usage, error.seconds, error.attempts)), None
        except ModelError as error:
            charge(error, [first])
            raise
        both = _with(first, reply.usage, reply.seconds, reply.attempts)
        return both, _log_probability(reply) if reply.text.strip() == other else None


def _with(first: ChatReply, usage: Usage, seconds: float, attempts: int) -> ChatReply:
    """*first*, charged with a further call."""
    return replace(
        first, usage=added(first.usage, usage), seconds=first.seconds + seconds, attempts=first.attempts + attempts
    )


def _log_probability(reply: ChatReply) -> float | None:
    """Of the whole answer, the token that ends it included where the model returns that; None if it is not known."""
    return sum(reply.logprobs) if reply.logprobs else None


def _share(one: float, other: float) -> float:
    """`exp(one) / (exp(one) + exp(other))`."""
    return 1 / (1 + math.exp(min(700.0, other - one)))


def _declared_system(spec: str) -> str | None:
    """The system message that the checkpoint of *spec*, or its adapter first, declares; None without one."""
    for folder in checkpoint_folders(spec):
        value = declarations(folder).get(DECLARED_SYSTEM)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _judge(model: ChatModel | None, settings: JudgeSettings) -> OrmJudge:
    if model is None:
        raise BadInput("judge 'orm' needs a model: write orm:MODEL, for example orm:local:FOLDER")
    return OrmJudge(model, settings)


def _no_rater(model: ChatModel | None, settings: RaterSettings) -> NoReturn:
    raise BadInput("`orm:` judges outcomes, not milestones: choose another rater (--rater), for example state or same")


ENTRY = JudgeEntry(_no_rater, _judge)
