"""The policy of a model with a vendor's tool set: calls become actions, one at a time.

The calls of an answer are done in order, and the model is asked again after the last. The rest of an answer is dropped
as soon as one call fails, or another page, tab or dialog is shown. Then every call gets its result, as the vendors
require.

A conversation lives in this process. It continues only if the action that it proposed is the last one of the episode;
otherwise (after a resume, or where no person accepted a call that the vendor doubts) a new one begins, whose first
message tells the goal, the plan, the log of actions and the notes in words, as the prompts of other policies do. A long
conversation is ended in the same way, because its pictures are paid for at every call.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agent.episode.policy import ActionProposal, ModelCall, Turn, storable_action
from agent.episode.toolsets.anthropic import BROWSER, COMPUTER, COMPUTER_MEMBERS, browser_members
from agent.episode.toolsets.calls import Do, Outcome, Refs, Refuse, Scene, TextResult, read_call
from agent.episode.toolsets.display import Display
from agent.episode.toolsets.functions import FOR_BROWSER, FOR_COMPUTER, FUNCTIONS
from agent.episode.toolsets.openai import actions_of, read_action
from agent.episode.toolsets.prompts import (
    CHANGED,
    DONE,
    NOT_ACCEPTED,
    NOT_DONE,
    first_message,
    news_message,
    no_call_message,
    open_tabs,
    result_text,
    system_text,
)
from envs.core.action_languages.note_lines import note_edits
from envs.core.actions import Action, FocusTab, Reason, Stop, Wait
from envs.core.notes import NoteEdit
from envs.core.observation import Observation
from envs.core.record import storable
from envs.core.tasks import TaskRef
from models.asking import charge, converse, empty_reply
from models.base import Budget, ChatReply, Image, Message, ModelError, ModelInvalidAnswer, ModelTruncated
from models.prompting.prompt_text import PromptText, cut, folded
from models.tool_use import (
    ModelTurn,
    Results,
    SafetyCheck,
    ToolCall,
    ToolModel,
    ToolReply,
    ToolRequest,
    ToolResult,
    Toolset,
    recorded,
    turn_text,
)

MAX_ASKED: Final = 8
"""Model calls for one action: a model may observe the page in several ways before it acts."""
MAX_UNUSABLE: Final = 2
"""Truncated or empty answers for one action; each is billed."""
MAX_ANSWERS: Final = 25
"""Answers of one conversation; each leaves a picture in it."""
MAX_SILENT: Final = 2
"""Answers in a row without a call; the last one ends the episode, as its answer."""
CONVERSATIONS: Final = 256
"""Conversations that are kept; more than there are workers."""
ANSWER_TOKENS: Final = 4_096
RATIONALE_CHARS: Final = 1_000
CHECK_CHARS: Final = 500
NO_ACTION: Final = "only looked at the page, which is no action"
_REFUSED: Final = frozenset({Reason.DECLINED, Reason.NO_APPROVER})


@dataclass(frozen=True, slots=True)
class _Frame:
    """What must stay the same for the rest of an answer to be done."""

    url: str
    document: str
    tabs: tuple[tuple[int, bool], ...]
    dialog: bool

    @classmethod
    def of(cls, observation: Observation) -> _Frame:
        tabs = tuple((tab.index, tab.active) for tab in observation.tabs)
        return cls(observation.url, observation.document, tabs, observation.dialog is not None)


@dataclass(slots=True)
class _Doing:
    """A call whose actions are being done."""

    call: ToolCall
    left: deque[Action] = field(default_factory=deque[Action])
    parts: deque[dict[str, Any]] = field(default_factory=deque[dict[str, Any]])
    """Actions of OpenAI's list that are not read yet: each is read against the page as it is then."""
    unasked: tuple[SafetyCheck, ...] = ()
    """The vendor's checks, until an action was proposed with them."""
    accepted: tuple[SafetyCheck, ...] = ()
    """The vendor's checks, once a person has approved the action that was proposed with them."""


@dataclass(slots=True)
class _Talk:
    """The conversation of one episode."""

    refs: Refs = field(default_factory=Refs)
    items: tuple[Message | ModelTurn | Results, ...] = ()
    pending: deque[ToolCall] = field(default_factory=deque[ToolCall])
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    reasons: list[PromptText] = field(default_factory=list[PromptText])
    """Why calls failed, for vendors whose results are pictures alone."""
    doing: _Doing | None = None
    proposed: Action | None = None
    past: int = 0
    """Actions of the episode when the last one was proposed."""
    frame: _Frame | None = None
    """Of the page that the first action of the answer was chosen on; None before it."""
    failed: bool = False
    """A call of the answer failed."""
    doubted: bool = False
    """A call has ended whose checks no person accepted. No result of it can be sent, so the conversation is over."""
    answers: int = 0
    silent: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether all that the model asked for was done."""
        doing = self.doing
        return not self.pending and (doing is None or not (doing.left or doing.parts))

    def goes_on(self, turn: Turn) -> bool:
        """Whether the episode is where the conversation left it."""
        if len(turn.past) == self.past:
            return bool(turn.view.problems)  # the answer was not accepted
        return len(turn.past) == self.past + 1 and turn.past[-1].action == self.proposed

    def close(
        self, observation: Observation, text: PromptText, picture: Image | None = None, *, failed: bool = False
    ) -> None:
        """Gives the current call its result."""
        assert self.doing is not None
        call, accepted, self.doing = self.doing.call, self.doing.accepted, None
        tabs = open_tabs(observation)
        self.results.append(ToolResult(call, text.text, picture, is_error=failed, tabs=tabs, acknowledged=accepted))
        self.doubted = self.doubted or accepted != call.checks
        if failed:
            self.failed = True
            self.reasons.append(text)


@dataclass(slots=True)
class _Asked:
    """The model calls of one turn."""

    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    problems: list[str] = field(default_factory=list[str])
    of_last: list[str] = field(default_factory=list[str])
    """Problems of the last answer."""
    unusable: int = 0
    """Truncated or empty answers."""
    raw: str = ""
    text: str = ""
    edits: tuple[NoteEdit, ...] = ()

    def add(self, messages: tuple[Message, ...], reply: ChatReply, problem: str = NO_ACTION) -> None:
        """Adds a call. Every call has an error, until an action is read from it."""
        self.calls.append(ModelCall(messages, reply, problem))
        self.of_last = []

    def answered(self, messages: tuple[Message, ...], answer: ToolReply) -> None:
        self.raw, self.text = storable(turn_text(answer.turn)), storable(answer.turn.text)
        self.edits = tuple(dict.fromkeys((*self.edits, *note_edits(self.text))))
        self.add(messages, replace(answer.reply, text=self.raw))

    def problem(self, text: str) -> None:
        """Records why a call of the last answer was refused."""
        self.problems.append(text)
        self.of_last.append(text)
        if self.calls:
            self.calls[-1] = replace(self.calls[-1], error="; ".join(self.of_last))

    def deciding(self) -> tuple[ModelCall, ...]:
        return (*self.calls[:-1], replace(self.calls[-1], error=None)) if self.calls else ()


class ToolsetPolicy:
    """A :class:`agent.episode.policy.Policy`."""

    def __init__(self, model: ToolModel, *, thinking: Budget | None = None, deadline_s: float = 120.0) -> None:
        """*thinking*: budget of each call; None leaves the model's default."""
        self.spec = model.spec
        self._model = model
        self._toolset: Toolset = model.toolset
        self._thinking: Budget | None = thinking
        self._deadline_s = deadline_s
        self._talks: OrderedDict[tuple[TaskRef, int], _Talk] = OrderedDict()

    async def propose(self, turn: Turn) -> ActionProposal:
        talk, asked = self._talk(turn), _Asked()
        scene = _scene(talk, turn)
        _settle(talk, turn)
        while True:
            action = await asyncio.to_thread(self._next, talk, scene, asked)
            if action is None and talk.silent >= MAX_SILENT:
                action, talk.silent = Stop(answer=asked.text.strip() or None), 0
            if action is not None:
                return _proposal(talk, turn, storable_action(action), asked)
            if len(asked.calls) >= MAX_ASKED or asked.unusable >= MAX_UNUSABLE:
                error = asked.problems[-1] if asked.problems else NO_ACTION
                return ActionProposal(None, asked.raw, calls=tuple(asked.calls), error=error, note_edits=asked.edits)
            if talk.doubted:
                talk = self._kept(turn, _Talk(refs=talk.refs, past=len(turn.past)))
            await self._ask(talk, turn, scene, asked)

    def _talk(self, turn: Turn) -> _Talk:
        talk = self._talks.get((turn.task, turn.attempt))
        if talk is None or not talk.goes_on(turn) or (talk.answers >= MAX_ANSWERS and talk.is_idle):
            talk = _Talk(past=len(turn.past))
        return self._kept(turn, talk)

    def _kept(self, turn: Turn, talk: _Talk) -> _Talk:
        """*talk*, kept as the episode's conversation."""
        key = (turn.task, turn.attempt)
        self._talks[key] = talk
        self._talks.move_to_end(key)
        while len(self._talks) > CONVERSATIONS:
            self._talks.popitem(last=False)
        return talk

    def _next(self, talk: _Talk, scene: Scene, asked: _Asked) -> Action | None:
        """The next action that the model has asked for; None if there is none left. Answers calls that need none."""
        while talk.doing is not None or talk.pending:
            if talk.doing is None:
                self._begin(talk, scene, asked)
            elif talk.doing.left:
                if (action := _in_frame(talk, scene.observation)) is not None:
                    return action
            elif talk.doing.parts:
                self._take(talk, read_action(talk.doing.parts.popleft(), scene), scene.observation, asked)
            elif talk.doing.unasked:  # nothing but a screenshot: a person decides all the same
                talk.doing.left.append(Wait())
            else:
                talk.close(scene.observation, DONE)
        return None

    def _begin(self, talk: _Talk, scene: Scene, asked: _Asked) -> None:
        """Starts the next call of the answer."""
        call = talk.pending.popleft()
        talk.doing = _Doing(call, unasked=call.checks)
        if call.is_function:
            self._take(talk, read_call(FUNCTIONS, call.name, call.arguments, scene), scene.observation, asked)
        elif self._toolset == "openai-computer":
            talk.doing.parts.extend(actions_of(call.arguments.get("actions")))
        else:
            table = BROWSER if self._toolset == "anthropic-browser" else COMPUTER
            self._take(talk, read_call(table, call.name, call.arguments, scene), scene.observation, asked)

    def _take(self, talk: _Talk, outcome: Outcome, observation: Observation, asked: _Asked) -> None:
        """Applies what the current call, or one action of its list, comes to."""
        assert talk.doing is not None
        match outcome:
            case Do() | Refuse() if talk.failed:
                talk.close(observation, NOT_DONE, failed=True)
            case Do(actions=actions):
                talk.doing.left.extend(actions)
            case TextResult(text=text, picture=picture):
                if talk.doing.call.is_function or self._toolset != "openai-computer":
                    talk.close(observation, text, picture)
            case Refuse(reason=reason):
                asked.problem(f"{talk.doing.call.name}: {reason.text}")
                talk.close(observation, reason, failed=True)

    async def _ask(self, talk: _Talk, turn: Turn, scene: Scene, asked: _Asked) -> None:
        """Asks the model. The conversation grows only by an answer."""
        shot = scene.screenshot
        picture = None if shot is None else await asyncio.to_thread(scene.display.picture, shot)
        message = self._next_message(talk, turn, scene, picture)
        is_browser = self._toolset == "anthropic-browser"
        request = ToolRequest(
            system=system_text(turn.view),
            history=(*talk.items, message),
            display=scene.display.size,
            functions=FOR_BROWSER if is_browser else FOR_COMPUTER,
            members=browser_members(uploads=bool(turn.view.provided.files)) if is_browser else COMPUTER_MEMBERS,
            thinking_tokens=self._thinking,
            max_tokens=ANSWER_TOKENS,
            deadline_s=self._deadline_s,
        )
        try:
            answer = await converse(self._model, request)
        except ModelError as error:
            if not isinstance(error, ModelTruncated | ModelInvalidAnswer) or error.usage is None:
                charge(error, [call.reply for call in asked.calls])
                raise
            reply = empty_reply(error, error.usage, self.spec)
            asked.add(recorded(request), reply, str(error))
            asked.problems.append(str(error))
            asked.unusable += 1
            return
        asked.answered(recorded(request), answer)
        talk.items = (*talk.items, message, answer.turn)
        talk.pending, talk.results, talk.reasons = deque(answer.turn.calls), [], []
        talk.frame, talk.failed = None, False
        talk.answers += 1
        talk.silent = 0 if answer.turn.calls else talk.silent + 1

    def _next_message(self, talk: _Talk, turn: Turn, scene: Scene, picture: Image | None) -> Message | Results:
        """The next message to the model."""
        if not talk.items:
            return first_message(turn.view, self._toolset, picture)
        if talk.silent:
            return no_call_message()
        results, reasons = talk.results, list[PromptText]()
        if self._toolset == "openai-computer":  # a call of the computer is answered with a picture alone
            reasons = talk.reasons
            frame = picture or scene.display.blank()
            results = [each if each.call.is_function else replace(each, image=frame) for each in results]
        shown = any(result.image is not None and not result.is_error for result in results)
        news = news_message(turn.view, self._toolset, picture, shown=shown, failed=reasons)
        return Results(tuple(results), news)


def _scene(talk: _Talk, turn: Turn) -> Scene:
    last = turn.past[-1] if turn.past else None
    carried_out = last.action if last is not None and last.carried_out else None
    return Scene(turn.view, Display.of(turn.view.observation.viewport), talk.refs, carried_out)


def _settle(talk: _Talk, turn: Turn) -> None:
    """Takes the result of the action that was proposed last."""
    if talk.doing is None or talk.proposed is None:
        return
    action, done, observation = talk.proposed, len(turn.past) == talk.past + 1, turn.view.observation
    talk.proposed, talk.past = None, len(turn.past)
    if not done:
        talk.close(observation, NOT_ACCEPTED, failed=True)
        return
    result = turn.view.last
    refused = result is not None and result.reason in _REFUSED
    talk.doing.accepted = () if refused else talk.doing.call.checks
    if result is None or not result.ok:
        talk.close(observation, result_text(result), failed=True)
    elif not (talk.doing.left or talk.doing.parts):
        talk.close(observation, result_text(result))
    elif isinstance(action, FocusTab):
        talk.frame = None  # the rest of the call is for the tab that it brought to the front


def _in_frame(talk: _Talk, observation: Observation) -> Action | None:
    """The next action of the current call, if the page is still the one that the answer was for."""
    assert talk.doing is not None
    frame = _Frame.of(observation)
    if talk.frame is not None and talk.frame != frame:
        talk.close(observation, CHANGED, failed=True)
        return None
    talk.frame = frame
    return talk.doing.left.popleft()


def _proposal(talk: _Talk, turn: Turn, action: Action, asked: _Asked) -> ActionProposal:
    talk.proposed, talk.past = action, len(turn.past)
    checks: tuple[SafetyCheck, ...] = ()
    whole = ""
    if talk.doing is not None:
        checks, talk.doing.unasked = talk.doing.unasked, ()
        whole = json.dumps(dict(talk.doing.call.arguments), ensure_ascii=False)
    return ActionProposal(
        action,
        asked.raw or action.model_dump_json(),
        calls=asked.deciding(),
        note_edits=asked.edits,
        rationale=cut(folded(asked.text), RATIONALE_CHARS),
        checks=tuple(cut(f"{check.message or check.code or check.id} (for {whole})", CHECK_CHARS) for check in checks),
    )
