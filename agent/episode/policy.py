"""Who chooses the next action: a model that reads the page, or a script (tests, demonstrations, solvers)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar
from zlib import crc32

from agent.episode.prompts import PolicyView, Style, render_policy_prompt
from envs.core.action_languages import Language, ParseError
from envs.core.actions import Action, Stop
from envs.core.observation import ElementKey, Observation
from envs.core.past_actions import PastAction
from envs.core.record import storable
from envs.core.tasks import TaskRef
from envs.observer.nearest_controls import nearest_controls
from models.asking import charge, complete
from models.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Image,
    Message,
    ModelError,
    ModelInvalidAnswer,
    ModelTruncated,
)
from models.prompting.prompt_text import PromptText, fenced, joined, message, on_one_line, words

MAX_ANSWER_TOKENS = 1_024
"""Visible tokens of one policy answer; an action with its comments is far shorter."""
REPAIR_CHARS = 600
"""Characters of the reason in a repair message for a small model."""
VAIN_TRIES = 2
"""Times a policy is asked for something else than what has just changed nothing."""
VAIN = "the same again, which has just changed nothing"
"""Why an answer was drawn anew."""


def target_of(action: Action, look: Observation) -> ElementKey | None:
    """The key of the element that the action names, None if it names none that was shown."""
    ref = getattr(action, "ref", None)
    element = look.element(ref) if isinstance(ref, int) else None
    return None if element is None else element.key


@dataclass(frozen=True, slots=True)
class Turn:
    """Everything a policy is told when it is asked for one action."""

    task: TaskRef
    attempt: int
    step: int
    """1-based number of the step that the action will be."""
    view: PolicyView
    past: tuple[PastAction, ...] = ()
    """All committed actions, oldest first, those before a resume included."""
    vain: Action | None = None
    """The last action, where it left the page as it was, to the letter; to wait is never in vain."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One model call of a policy: what was sent and what came back."""

    messages: tuple[Message, ...]
    reply: ChatReply
    error: str | None = None
    """Why the answer was no action; None if it was one."""


@dataclass(frozen=True, slots=True)
class ActionProposal:
    """A policy's answer."""

    action: Action | None
    """None where no action could be read, after the repair attempt too."""
    raw: str
    """The text as it came, storable."""
    notes: tuple[str, ...] = ()
    asked: tuple[Asked, ...] = ()
    """Every model call of the turn, ordered for :func:`deciding_call`."""
    error: str = ""
    """For the model's next turn: why the answer was no action."""


class _Call(Protocol):
    """A model call: :class:`Asked`, or :class:`envs.core.trace.Call` of the role `policy`."""

    @property
    def error(self) -> str | None: ...


_C = TypeVar("_C", bound=_Call)


def deciding_call(calls: Iterable[_C]) -> _C | None:
    """The call of one turn that the action was read from: the only one without an error, and the last one in order.

    None where a turn has no action, or a script chose it. Policies record every other call with an error, and training
    learns from the deciding call alone.
    """
    return next((call for call in reversed(tuple(calls)) if call.error is None), None)


def storable_action(action: Action) -> Action:
    """*action* with its texts made storable: what is done to the page is what the trace says."""
    texts = {name: value for name, value in action if isinstance(value, str)}
    clean = {name: storable(value) for name, value in texts.items()}
    return action if clean == texts else action.model_copy(update=clean)


def draw_seed(seed: int, turn: Turn, time: int = 1) -> int:
    """Of a sampled answer, 0 to 2³¹ - 1: the same whenever this turn is played, another for any other turn.

    Two instances often show the same page. With the same seed they would be given the same answer, and a policy that
    learns from what it tries would try one thing only.
    """
    task = turn.task
    words = f"{seed} {task.suite}/{task.name}/{task.seed} {turn.attempt} {turn.step} {time}"
    return crc32(words.encode()) & 0x7FFF_FFFF


class Policy(Protocol):
    """Stateless between turns: whatever it needs is in the turn, so a resumed episode goes on alike."""

    spec: str

    async def propose(self, turn: Turn) -> ActionProposal:
        """One action, or a proposal without one. Raises :class:`models.base.ModelError`."""
        ...


class ModelPolicy:
    """Asks a chat model; an answer that is no action is shown to it once, with the reason, for repair.

    One that would do again what has just been in vain is drawn anew at *vain_temperature*, where that is higher than
    *temperature*: the page is the same, so a model that always says what it finds likeliest would never get on.
    """

    def __init__(
        self,
        model: ChatModel,
        language: Language,
        style: Style,
        *,
        temperature: float = 0.0,
        vain_temperature: float = 0.0,
        seed: int = 0,
        deadline_s: float = 120.0,
        shows_pictures: bool = False,
    ) -> None:
        self.spec = model.spec
        self._model = model
        self._language = language
        self._style: Style = style
        self._temperature = temperature
        self._vain_temperature = vain_temperature
        self._seed = seed
        self._deadline_s = deadline_s
        self._shows_pictures = shows_pictures

    async def propose(self, turn: Turn) -> ActionProposal:
        messages = self._prompt(turn)
        first = await self._ask(messages, turn, 1, self._temperature)
        proposal = self._read(messages, first, ())
        if proposal.action is None:
            repair = (
                *messages,
                Message("assistant", proposal.raw),
                message("user", self._repair(proposal.error, turn)),
            )
            second = await self._ask(repair, turn, 2, self._temperature, proposal.asked)
            proposal = self._read(repair, second, proposal.asked)
        if proposal.action is None or proposal.action != turn.vain or self._vain_temperature <= self._temperature:
            return proposal
        return await self._another(messages, turn, proposal)

    async def _another(self, messages: tuple[Message, ...], turn: Turn, vain: ActionProposal) -> ActionProposal:
        """The first of some answers that is another action than *vain*; else that one."""
        asked = tuple(replace(one, error=one.error or VAIN) for one in vain.asked)
        for time in range(VAIN_TRIES):
            reply = await self._ask(messages, turn, 3 + time, self._vain_temperature, asked)
            other = self._read(messages, reply, asked)
            if other.action not in (None, vain.action):
                return other
            asked = (*other.asked[:-1], replace(other.asked[-1], error=other.error or VAIN))
        return replace(vain, asked=(*asked[len(vain.asked) :], *vain.asked))

    def _prompt(self, turn: Turn) -> tuple[Message, ...]:
        """The rendered view; a picture of the page, where one was taken to be shown, goes with the last message."""
        messages = render_policy_prompt(self._style, turn.view)
        picture = turn.view.observation.screenshot
        if not self._shows_pictures or picture is None:
            return messages
        return (*messages[:-1], replace(messages[-1], images=(Image(picture),)))

    def _repair(self, error: str, turn: Turn) -> PromptText:
        """What was wrong, and what there is: an answer without an action often names no control of the page. The error
        quotes the answer, which may repeat the page."""
        if self._style == "compact":
            parts = [words("That answer holds no action: ") + on_one_line(error, REPAIR_CHARS)]
        else:
            parts = [words("That answer holds no action:"), fenced("error", error)]
            if controls := nearest_controls(turn.view.observation.elements):
                parts += [words("Controls of the page:"), fenced("controls", controls)]
        return joined("\n", [*parts, words("Answer again with exactly one action.")])

    async def _ask(
        self,
        messages: tuple[Message, ...],
        turn: Turn,
        time: int,
        temperature: float,
        before: tuple[Asked, ...] = (),
    ) -> ChatReply:
        """An answer that never ends, or says nothing, is the policy's own failing: it counts as one without an action,
        not as broken. What was asked *before* in this turn is charged to an error."""
        request = ChatRequest(
            messages=messages,
            max_tokens=MAX_ANSWER_TOKENS,
            temperature=temperature,
            seed=draw_seed(self._seed, turn, time) if temperature > 0 else self._seed,
            logprobs=True,
            deadline_s=self._deadline_s,
        )
        try:
            return await complete(self._model, request)
        except ModelError as error:
            if isinstance(error, ModelTruncated | ModelInvalidAnswer) and error.usage is not None:
                return ChatReply("", error.usage, self.spec, error.seconds, error.attempts)
            charge(error, [one.reply for one in before])  # nothing came, which says nothing of the policy
            raise

    def _read(self, messages: tuple[Message, ...], reply: ChatReply, before: tuple[Asked, ...]) -> ActionProposal:
        raw = storable(reply.text)
        try:
            parsed = self._language.parse(raw)
        except ParseError as error:
            asked = Asked(messages, reply, str(error))
            return ActionProposal(None, raw, asked=(*before, asked), error=str(error))
        return ActionProposal(parsed.action, raw, parsed.notes, asked=(*before, Asked(messages, reply)))


Script = Callable[[Turn], Action] | Sequence[Action]
"""The actions in order, or a function of the turn. A list that is used up ends the episode with Stop."""


class ScriptedPolicy:
    """Plays a script; used by demonstrations, solvers and tests. It asks no model."""

    spec = "scripted"

    def __init__(self, script: Script, language: Language) -> None:
        self._script = script
        self._language = language

    async def propose(self, turn: Turn) -> ActionProposal:
        action = storable_action(self._next(turn))
        return ActionProposal(action, self._language.show(action))

    def _next(self, turn: Turn) -> Action:
        if callable(self._script):
            return self._script(turn)
        index = len(turn.past)
        return self._script[index] if index < len(self._script) else Stop()
