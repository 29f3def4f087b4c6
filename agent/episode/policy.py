"""Policies, which choose the next action: a chat model, or a script (tests, demonstrations, solvers)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar
from zlib import crc32

from agent.episode.answer_rules import repaired_kind
from agent.episode.points import NOT_OFFERED, PointScale, is_at_point, offers_points
from agent.episode.profile_prompts import names_control, render_prompt
from agent.episode.prompts import PolicyView, Style
from agent.episode.short_prompts import COPIED, repair_text, thought_opening, valid_form
from agent.episode.worked_examples import copied_text
from agent.profiles.names import OF_STYLE
from agent.profiles.profile import Profile, named
from envs.core.action_languages import Language, Parsed, ParseError
from envs.core.action_languages.choices import page_choices
from envs.core.action_languages.grammar import grammar
from envs.core.action_languages.note_lines import note_edits
from envs.core.action_languages.short_reference import refuse_placeholders
from envs.core.actions import Action, Stop
from envs.core.grounding import Description, Grounding
from envs.core.notes import NoteEdit
from envs.core.observation import ElementKey, Observation
from envs.core.past_actions import PastAction
from envs.core.record import storable
from envs.core.tasks import TaskRef
from envs.observer.nearest_controls import nearest_controls
from models.asking import complete_or_empty
from models.base import (
    Budget,
    ChatModel,
    ChatReply,
    ChatRequest,
    Image,
    Message,
    answer_turn,
)
from models.prompting.prompt_text import PromptText, cut, fenced, joined, message, on_one_line, words
from models.prompting.thought_request import with_thought_request
from models.thinking import budget_of
from models.vision.pictures import picture_for
from models.vision.profiles import VisionProfile

MAX_ANSWER_TOKENS = 1_024
"""Visible tokens of one policy answer; an action with its comments is far shorter."""
FURTHER_ACTION_TOKENS = 256
"""Visible tokens that each further action of an answer may take."""
REPAIR_CHARS = 600
"""Longest error text in the repair message for a small model."""
NO_OP_RETRIES = 2
"""Answers that are sampled again where the first repeats a no-op action."""
REPEATS_NO_OP = "the same again, which has just changed nothing"
"""The error of a call whose answer repeats a no-op action."""


def target_of(action: Action, observation: Observation) -> ElementKey | None:
    """Returns the key of the element that the action names; None if it names no element that was shown."""
    ref = getattr(action, "ref", None)
    element = observation.element(ref) if isinstance(ref, int) else None
    return None if element is None else element.key


@dataclass(frozen=True, slots=True)
class Turn:
    """The input of a policy for one action."""

    task: TaskRef
    attempt: int
    step: int
    """1-based number of the step to choose an action for."""
    view: PolicyView
    past: tuple[PastAction, ...] = ()
    """All committed actions, oldest first. Actions before a resume are included."""
    no_op: Action | None = None
    """The last action, where the page is unchanged after it; a `Wait` and a tool never count. As it was written:
    UNGROUNDED in place of a control that was described."""
    no_op_described: tuple[Description, ...] = ()
    """What it described."""

    def is_no_op(self, proposal: ActionProposal) -> bool:
        """Whether *proposal* is the last action again, which changed nothing."""
        return proposal.action == self.no_op and proposal.described == self.no_op_described


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call of a policy: its messages and its reply."""

    messages: tuple[Message, ...]
    reply: ChatReply
    error: str | None = None
    """Why the answer was not used; None if the action was read from it."""


@dataclass(frozen=True, slots=True)
class ActionProposal:
    """The action that a policy chose, with its model calls."""

    action: Action | None
    """None where no action could be parsed, the repair attempt included."""
    raw: str
    """The text of the answer, storable."""
    notes: tuple[str, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    """Every model call of the turn, ordered for :func:`deciding_call`."""
    error: str = ""
    """Why no action could be parsed; the next prompt quotes it."""
    note_edits: tuple[NoteEdit, ...] = ()
    """Changes of the notes, also those of an answer that was repaired, and where there is no action."""
    then: tuple[Parsed, ...] = ()
    """Further actions of the answer; their element numbers are those of the same observation."""
    rationale: str = ""
    """What the policy wrote before the action, on one line."""
    described: tuple[Description, ...] = ()
    """Controls of the action that the policy described in words; a grounder finds them before the action is done."""
    groundings: tuple[Grounding, ...] = ()
    """How a grounder found them."""
    wrong_form: str = ""
    """Name of the action whose values are wrong, where no action could be parsed but one was recognised."""
    copied: bool = False
    """An action has a text of the example of the prompt; there is no action."""
    label: str = ""
    """What an expert would answer at this state, for imitation; empty without an expert, or where it knows nothing."""
    by_expert: bool = False
    """`action` is the expert's, in place of another or no action of the policy."""
    checks: tuple[str, ...] = ()
    """Doubts of the model's vendor about the action, which a person must approve then, whatever its class."""


class _Call(Protocol):
    """A model call: :class:`ModelCall`, or :class:`envs.core.trace.Call` of the role `policy`."""

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
    """Returns *action* with storable texts, so that the executed action equals the recorded one."""
    texts = {name: value for name, value in action if isinstance(value, str)}
    clean = {name: storable(value) for name, value in texts.items()}
    return action if clean == texts else action.model_copy(update=clean)


def draw_seed(seed: int, turn: Turn, attempt: int = 1) -> int:
    """Returns the sampling seed of a model call, 0 to 2³¹ - 1. It depends on run seed, task, attempt, step and call.

    Two instances often show the same page. With one seed they would get the same answer, and a policy that learns from
    its rollouts would not explore.
    """
    key = f"{seed} {turn.task.id} {turn.attempt} {turn.step} {attempt}"
    return crc32(key.encode()) & 0x7FFF_FFFF


class Policy(Protocol):
    """Chooses actions. It keeps no state between turns, so a resumed episode continues unchanged."""

    spec: str

    async def propose(self, turn: Turn) -> ActionProposal:
        """Returns one action, or a proposal without an action. Raises :class:`models.base.ModelError`."""
        ...


class ModelPolicy:
    """Asks a chat model for the action. An answer that cannot be parsed is sent back once with the error, for repair.

    An answer that repeats a no-op action is sampled again at *retry_temperature*, where that is
    higher than *temperature*. The page is unchanged, so greedy decoding would repeat the action forever.
    """

    def __init__(
        self,
        model: ChatModel,
        language: Language,
        style: Style,
        *,
        temperature: float = 0.0,
        retry_temperature: float = 0.0,
        seed: int = 0,
        deadline_s: float = 120.0,
        vision: VisionProfile | None = None,
        max_actions: int = 1,
        rationale_chars: int = 0,
        thinking: Budget | None = None,
        constrained: bool = False,
        thoughts: bool = False,
        asks_thought: bool = False,
        profile: Profile | None = None,
        described: Language | None = None,
        exact_ratings: bool = False,
    ) -> None:
        """*max_actions*, *rationale_chars*: see :class:`agent.episode.prompts.PolicyView`. *thinking*: budget of each
        call; None leaves the model's default. *constrained*: answers follow a grammar of the actions that are valid on
        the page, if the model supports grammars. *thoughts*: the grammar allows a thought in tags first.
        *asks_thought*: prompts end with the line that asks for it. *profile*: of the prompts; None is that of *style*.
        *vision*: shows the pictures of the view to a model of this profile, which answers in its coordinates; None
        shows none. *described*: the language where the view has a screenshot, on which a grounder finds what the
        policy describes. *exact_ratings*: see :class:`agent.episode.prompts.PolicyView`."""
        self.spec = model.spec
        self._model = model
        self._language = language
        self._described = described
        self._style: Style = style
        self._profile = named(OF_STYLE[style]) if profile is None else profile
        self._temperature = temperature
        self._retry_temperature = retry_temperature
        self._seed = seed
        self._deadline_s = deadline_s
        self.vision = vision
        self.max_actions = max_actions
        self.rationale_chars = rationale_chars
        self.constrained = constrained
        self.thoughts = thoughts
        self.asks_thought = asks_thought
        self.exact_ratings = exact_ratings
        self.thinking: Budget | None = None if thinking is None else budget_of(model, thinking)

    async def propose(self, turn: Turn) -> ActionProposal:
        turn, images = await asyncio.to_thread(self._seen, turn)
        messages = self._prompt(turn, images)
        first = await self._ask(messages, turn, 1, self._temperature)
        proposal = self._read(messages, first, turn)
        if proposal.action is None:
            repair = self._repair_messages(messages, proposal, turn)
            second = await self._ask(repair, turn, 2, self._temperature, proposal.calls)
            proposal = _with_edits(proposal, self._read(repair, second, turn, proposal.calls))
        if proposal.action is None or not turn.is_no_op(proposal) or self._retry_temperature <= self._temperature:
            return proposal
        return await self._resample(messages, turn, proposal)

    async def _resample(self, messages: tuple[Message, ...], turn: Turn, first: ActionProposal) -> ActionProposal:
        """Returns the first sampled answer with another action than *first*; *first* where there is none."""
        calls = tuple(replace(call, error=call.error or REPEATS_NO_OP) for call in first.calls)
        for retry in range(NO_OP_RETRIES):
            reply = await self._ask(messages, turn, 3 + retry, self._retry_temperature, calls)
            other = self._read(messages, reply, turn, calls)
            if other.action is not None and (other.action, other.described) != (first.action, first.described):
                return _with_edits(first, other)
            calls = (*other.calls[:-1], replace(other.calls[-1], error=other.error or REPEATS_NO_OP))
        return replace(first, calls=(*calls[len(first.calls) :], *first.calls))

    def _seen(self, turn: Turn) -> tuple[Turn, tuple[Image, ...]]:
        """The turn with the coordinates of the model, and the pictures that it is shown: the view and, where the run
        shows both, the view with marks."""
        observation = turn.view.observation
        pictures = [picture for picture in (observation.screenshot, observation.marked) if picture is not None]
        if self.vision is None or not pictures:
            return turn, ()
        images, frames = zip(*(picture_for(self.vision, png, observation.viewport) for png in pictures), strict=True)
        return replace(turn, view=replace(turn.view, points=PointScale(self.vision.space, frames[0]))), images

    def _prompt(self, turn: Turn, images: tuple[Image, ...]) -> tuple[Message, ...]:
        """Renders the view. The last message has the pictures."""
        view = replace(
            turn.view,
            language=self._language_for(turn),
            max_actions=self.max_actions,
            rationale_chars=self.rationale_chars,
            names_control=self._names_control(turn),
            exact_ratings=self.exact_ratings,
        )
        *before, last = render_prompt(self._profile, view)
        text = with_thought_request(last.text) if self.asks_thought else last.text
        return (*before, replace(last, text=text, images=images))

    def _repair_messages(
        self, messages: tuple[Message, ...], proposal: ActionProposal, turn: Turn
    ) -> tuple[Message, ...]:
        if self._profile.is_short:
            repair = repair_text(turn.view, proposal.wrong_form, copied=proposal.copied)
            asked = replace(messages[-1], text=f"{messages[-1].text}\n\n{repair.text}")
            # A model that copied the example once copies it again while it sees it.
            return (messages[0], asked) if proposal.copied else (*messages[:-1], asked)
        answered = answer_turn(proposal.raw, proposal.calls[-1].reply.signature)
        return (*messages, answered, message("user", self._repair(proposal.error, turn)))

    def _language_for(self, turn: Turn) -> Language:
        """Controls are named by number where there is no screenshot, for example where it would show a secret."""
        seen = turn.view.observation.screenshot is not None
        return self._described if self._described is not None and seen else self._language

    def _repair(self, error: str, turn: Turn) -> PromptText:
        """Renders the repair message: the error and, in the full style, the controls of the page.

        The error quotes the answer, which may repeat page text, so it is data."""
        if self._style == "compact":
            parts = [words("That answer holds no action: ") + on_one_line(error, REPAIR_CHARS)]
        else:
            parts = [words("That answer holds no action:"), fenced("error", error)]
            controls = nearest_controls(turn.view.observation.elements)
            if controls and not self._language_for(turn).describes:
                parts += [words("Controls of the page:"), fenced("controls", controls)]
        return joined("\n", [*parts, words("Answer again with ") + repaired_kind(self.max_actions)])

    async def _ask(
        self,
        messages: tuple[Message, ...],
        turn: Turn,
        number: int,
        temperature: float,
        before: tuple[ModelCall, ...] = (),
    ) -> ChatReply:
        """Sends call *number* of the turn.

        A truncated or empty answer counts as an answer without an action, not as a broken episode. The usage of the
        calls *before* in this turn is added to an error."""
        request = ChatRequest(
            messages=messages,
            thinking_tokens=self.thinking,
            max_tokens=MAX_ANSWER_TOKENS + FURTHER_ACTION_TOKENS * (self.max_actions - 1),
            temperature=temperature,
            seed=draw_seed(self._seed, turn, number) if temperature > 0 else self._seed,
            logprobs=True,
            grammar=self._grammar(turn) if self.constrained else None,
            deadline_s=self._deadline_s,
        )
        return await complete_or_empty(self._model, request, [call.reply for call in before])

    def _grammar(self, turn: Turn) -> str:
        view, provided = turn.view, turn.view.provided
        offered = offers_points(view.observation, view.points)
        choices = page_choices(view.observation, files=provided.files, tools=provided.tool_names, coordinates=offered)
        reasons = self._profile.is_short and self.rationale_chars > 0
        return grammar(
            self._language_for(turn),
            choices,
            self.max_actions,
            named=self._names_control(turn),
            last_steps=self._profile.endings if reasons else (),
            opening=thought_opening(replace(view, exact_ratings=self.exact_ratings)) if reasons else "",
            thoughts=self.thoughts,
        )

    def _names_control(self, turn: Turn) -> bool:
        """Whether the answer has a line that names its control."""
        return names_control(self._profile, self._language_for(turn), self.max_actions)

    def _read(
        self, messages: tuple[Message, ...], reply: ChatReply, turn: Turn, before: tuple[ModelCall, ...] = ()
    ) -> ActionProposal:
        raw, language = storable(reply.text), self._language_for(turn)
        try:
            parsed, *then = language.parse_all(raw) if self.max_actions > 1 else (language.parse(raw),)
            if self._style == "full" and not offers_points(turn.view.observation, turn.view.points):
                _refuse_points(parsed, *then)
            if self._profile.is_short:
                refuse_placeholders(each.action for each in (parsed, *then))
                self._refuse_copied(turn, parsed, *then)
        except ParseError as error:
            call = ModelCall(messages, reply, str(error))
            edits = self._edits(raw, turn)
            copied = isinstance(error, _CopiedText)
            problem = valid_form(language, error.form) if self._profile.is_short and not copied else str(error)
            return ActionProposal(
                None, raw, calls=(*before, call), error=problem, note_edits=edits, wrong_form=error.form, copied=copied
            )
        if (points := turn.view.points) is not None:
            parsed, *then = (replace(each, action=points.to_view(each.action)) for each in (parsed, *then))
        return ActionProposal(
            parsed.action,
            raw,
            parsed.notes,
            calls=(*before, ModelCall(messages, reply)),
            note_edits=self._edits(raw, turn, *(each.action for each in (parsed, *then))),
            then=tuple(then),
            rationale=cut(parsed.rationale, self.rationale_chars) if self.rationale_chars else "",
            described=parsed.described,
        )

    def _refuse_copied(self, turn: Turn, *answer: Parsed) -> None:
        """Raises _CopiedText where an action has a text of the example that nothing in the turn has."""
        view = turn.view
        notes = [note.text for note in view.notes]
        for parsed in answer:
            if copied_text(self._profile, view.instruction, view.observation, parsed.action, *notes):
                raise _CopiedText(COPIED)

    def _edits(self, raw: str, turn: Turn, *actions: Action) -> tuple[NoteEdit, ...]:
        """The changes of notes in an answer, where its prompt offered notes."""
        return note_edits(raw, *actions) if self._style == "full" and turn.view.max_notes else ()


class _CopiedText(ParseError):
    """An action has a text of the example of the prompt."""


def _refuse_points(*answer: Parsed) -> None:
    if any(is_at_point(parsed.action) for parsed in answer):
        raise ParseError(NOT_OFFERED)


def _with_edits(first: ActionProposal, second: ActionProposal) -> ActionProposal:
    """Returns *second* with the changes of notes of both, each once."""
    return replace(second, note_edits=tuple(dict.fromkeys((*first.note_edits, *second.note_edits))))


Script = Callable[[Turn], Action] | Sequence[Action]
"""The actions in order, or a function of the turn. After the last action of a list follows Stop."""


class ScriptedPolicy:
    """Returns the actions of a script; used by demonstrations, solvers and tests. It calls no model."""

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
