"""Reads trajectories from traces: one decision per step, the milestones done at each state, the outcome.

Token ids of a local policy are used as they were sampled. They are never encoded again from text, because a tokenizer
need not return the same ids (re-tokenization drift). Of any other policy, prompt and completion are kept as text, for
the tokenizer of the model that learns from them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from pydantic import AliasChoices, Field, model_validator

from agent.episode.policy import REPEATS_NO_OP, deciding_call
from envs.core.action_languages import LANGUAGES, Parsed, ParseError
from envs.core.actions import Action
from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import Call, Footer, Intent
from envs.core.trace_store import BlobStore, Step, Trace
from models.base import Message
from training.data.provenance import Provenance


class LeftOut(StrEnum):
    """Reason why an episode is excluded from training."""

    UNFINISHED = "unfinished"
    BROKEN = "broken"
    """The environment or a model failed: the episode says nothing about the policy."""
    UNJUDGED = "unjudged"
    NO_DECISION = "no decision"
    """It ended before its first step."""
    NO_PROMPT = "no prompt"
    """A step has no recorded prompt: a script played it."""
    FAILED = "failed"
    """Only successes were requested; :func:`select` does not use this reason."""
    HELD_OUT = "held out for evaluation"
    """Policies are measured on its instance; :func:`select` does not use this reason."""


class Tokens(Record):
    """Token ids of a decision, as its model sampled them. Files of earlier versions name `completion` `action`."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...] = Field(validation_alias=AliasChoices("completion", "action"))
    logprobs: tuple[float, ...] | None = None
    """Natural log-probability of each completion token when it was sampled; as long as `completion`."""


class Decision(Record):
    """One answer: the prompt that the policy got, its completion and the action in it, of several the first.

    Files of earlier versions name `completion` `said` and have no `action`: it is parsed from the text.
    """

    step: int
    """`Intent.step` of the trace, 1-based."""
    tokens: Tokens | None
    """None where the policy was not local; then `messages` is set."""
    messages: tuple[tuple[str, str], ...] = ()
    """(role, text) of the prompt; beside `tokens` only on request."""
    completion: str = Field(validation_alias=AliasChoices("completion", "said"))
    """The policy's answer as text."""
    action: Action | None = None
    """The typed action of `completion`; None where the text holds none."""
    ok: bool
    """The action was carried out."""

    @model_validator(mode="before")
    @classmethod
    def _parse_missing_action(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or "action" in fields:
            return fields
        values = cast(dict[str, Any], fields)
        text = values.get("completion", values.get("said"))
        return {**values, "action": _action_in(text)} if isinstance(text, str) else values


class Trajectory(Record):
    """One judged episode."""

    run_id: str
    episode_id: str
    task: TaskRef
    attempt: int
    category: str
    policy: str
    success: bool
    reward: float
    """The checker's, 0 to 1; of a judged outcome 0 or 1."""
    milestones: int
    """K; 0 where the episode had no plan or several plans, whose counts cannot be compared."""
    done: tuple[int, ...]
    """Milestones done at times 0 … T: before the first action … after the last. One more than decisions."""
    decisions: tuple[Decision, ...]
    unreadable: int = 0
    """Number of answers without an action; they give no rows of `decisions`."""
    rejected: tuple[Decision, ...] = ()
    """On request the answers without an action whose tokens are known. They have no action and are not carried out."""
    labelled: bool = False
    """The decisions are an expert's at the states of the policy, not what the policy did."""
    key_step: int | None = None
    """`Intent.step` at which a failure began, by the failure analyzer; None for a success, and where it is unknown."""

    @property
    def identity(self) -> str:
        """Deduplication key: equal for episodes with the same task and the same completions."""
        content = json.dumps([self.task.id, *(decision.completion for decision in self.decisions)])
        return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Selection:
    """The trajectories that were kept of a set of traces, and how many were left out, by reason."""

    kept: tuple[Trajectory, ...]
    left_out: Counter[LeftOut]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def successes(self) -> int:
        return sum(trajectory.success for trajectory in self.kept)


def select(traces: Iterable[tuple[Trace, BlobStore]], *, texts: bool = False, rejected: bool = False) -> Selection:
    """Reads *traces* in their order. *texts*: keep prompts as text beside their token ids, for a model with another
    tokenizer. *rejected*: also keep answers without an action, and failures that have no other answers.

    Raises TraceError for a trace that was edited after it was written, and for a blob that is missing or damaged.
    """
    kept: list[Trajectory] = []
    left_out: Counter[LeftOut] = Counter()
    provenance = Provenance()
    for trace, blobs in traces:
        provenance.add(trace)
        result = trajectory(trace, blobs, texts=texts, rejected=rejected)
        if isinstance(result, LeftOut):
            left_out[result] += 1
        else:
            kept.append(result)
    return Selection(tuple(kept), left_out, provenance)


def trajectory(trace: Trace, blobs: BlobStore, *, texts: bool = False, rejected: bool = False) -> Trajectory | LeftOut:
    """Reads one trace: its trajectory, or the reason why it is excluded. *rejected*: see :func:`select`."""
    footer = trace.footer
    if footer is None:
        return LeftOut.UNFINISHED
    if footer.outcome in ("broken", "unjudged"):
        return LeftOut.BROKEN if footer.outcome == "broken" else LeftOut.UNJUDGED
    steps = [step for step in trace.steps if step.commit is not None]
    refused = _rejected(trace) if rejected else ()
    if not steps and not refused:
        return LeftOut.NO_DECISION
    turns = _turns(steps)
    labelled = any(turn[0].intent.label for turn in turns)
    if labelled:  # where the expert knew nothing there is nothing to learn
        turns = [turn for turn in turns if turn[0].intent.label]
    decisions = [_decision(turn[0].intent, blobs, ok=all(map(_carried_out, turn)), texts=texts) for turn in turns]
    if any(decision is None for decision in decisions):
        return LeftOut.NO_PROMPT
    intents = [turn[0].intent for turn in turns]
    done = _done(trace, intents, footer) if intents else ()
    header = trace.header
    return Trajectory(
        run_id=header.run_id,
        episode_id=header.episode_id,
        task=header.task,
        attempt=header.attempt,
        category=header.category,
        policy=trace.policy,
        success=footer.outcome == "success",
        reward=_reward(footer),
        milestones=len(intents[0].rating.z) if done and intents else 0,
        done=done or (0,) * (len(turns) + 1),
        decisions=tuple(decision for decision in decisions if decision is not None),
        unreadable=_unreadable(trace),
        rejected=refused,
        labelled=labelled,
        key_step=None if footer.failure is None else footer.failure.key_step,
    )


def _reward(footer: Footer) -> float:
    """The reward of whoever decided the outcome."""
    if footer.score is not None and footer.judged_by != "judge":
        return footer.score.reward
    return float(footer.outcome == "success")


def _turns(steps: Sequence[Step]) -> list[list[Step]]:
    """*steps* by answer of the policy. The actions of a batch are one decision, with one prompt and completion."""
    turns: list[list[Step]] = []
    for step in steps:
        batch = step.intent.batch
        if batch is None or batch.place == 1 or not turns:
            turns.append([])
        turns[-1].append(step)
    return turns


def _carried_out(step: Step) -> bool:
    return step.commit is not None and step.commit.result.ok


def _unreadable(trace: Trace) -> int:
    """Counts the policy's answers without an action: retried ones, and those that ended without an action."""
    return len(_without_action(trace))


def _without_action(trace: Trace) -> list[tuple[int, Call]]:
    """(step, call) of each answer of the policy without an action. One that repeats a no-op has an action."""
    calls = [(step.intent.step, call) for step in trace.steps for call in step.intent.calls]
    calls += [(event.step, call) for event in trace.events for call in event.calls]
    return [(step, call) for step, call in calls if call.role == "policy" and call.error not in (None, REPEATS_NO_OP)]


def _rejected(trace: Trace) -> tuple[Decision, ...]:
    return tuple(
        Decision(
            step=step,
            tokens=Tokens(prompt=call.prompt_token_ids, completion=call.completion_token_ids, logprobs=call.logprobs),
            completion=call.completion,
            action=None,
            ok=False,
        )
        for step, call in _without_action(trace)
        if call.prompt_token_ids and call.completion_token_ids
    )


def _decision(intent: Intent, blobs: BlobStore, *, ok: bool, texts: bool) -> Decision | None:
    """Reads the call that gave the action; None where there is none or it has no prompt. Of a label, the prompt is that
    of the policy's first answer, because later ones quote the answer before, and the completion is the label."""
    calls = [call for call in intent.calls if call.role == "policy"]
    call = deciding_call(calls)
    if intent.label:
        messages = _messages(calls[0], blobs) if calls else ()
        return _labelled(intent, messages, ok=ok) if messages else None
    if call is None:
        return None
    tokens = None
    if call.prompt_token_ids and call.completion_token_ids:
        tokens = Tokens(prompt=call.prompt_token_ids, completion=call.completion_token_ids, logprobs=call.logprobs)
    messages = _messages(call, blobs) if texts or tokens is None else ()
    if tokens is None and not messages:
        return None
    return Decision(
        step=intent.step, tokens=tokens, messages=messages, completion=call.completion, action=intent.action, ok=ok
    )


def _labelled(intent: Intent, messages: tuple[tuple[str, str], ...], *, ok: bool) -> Decision:
    """The decision of the expert at the state of *intent*, with the prompt that the policy got."""
    label, action = intent.label, _action_in(intent.label)
    return Decision(step=intent.step, tokens=None, messages=messages, completion=label, action=action, ok=ok)


def parsed_completion(text: str) -> Parsed | None:
    """Parses a completion in any action language; None where it holds no action."""
    for language in LANGUAGES.values():
        try:
            return language.parse(text)
        except ParseError:
            continue
    return None


def _action_in(text: str) -> Action | None:
    parsed = parsed_completion(text)
    return None if parsed is None else parsed.action


def _messages(call: Call, blobs: BlobStore) -> tuple[tuple[str, str], ...]:
    if call.prompt_blob is None:
        return ()
    rows: list[dict[str, Any]] = json.loads(blobs.text(call.prompt_blob))
    return tuple((str(row["role"]), str(row["text"])) for row in rows)


def _done(trace: Trace, intents: Sequence[Intent], footer: Footer) -> tuple[int, ...]:
    """Number of milestones done at each state; empty without a plan or with several plans."""
    plans = {tuple(milestone.text for milestone in plan.milestones) for plan in trace.plans}
    vectors = [intent.rating.z for intent in intents]
    final = _final(trace, footer, len(vectors[0]))
    vectors.append(final if final is not None else vectors[-1])
    if not vectors[0] or len(plans) > 1 or len({len(z) for z in vectors}) > 1:
        return ()
    return tuple(sum(z) for z in vectors)


def _final(trace: Trace, footer: Footer, total: int) -> tuple[bool, ...] | None:
    """The milestones done after the last action: the checkers' result where the plan is the task's own, else the
    rater's. Checkers know the task's own milestones only; a model's plan can have as many."""
    checks = footer.milestone_checks
    own = not trace.plans or trace.plans[-1].milestones == trace.header.reference_milestones
    if checks is not None and own and len(checks) == total:
        return tuple(check.achieved for check in checks)
    return footer.rating.z if footer.rating is not None and len(footer.rating.z) == total else None


def prompt_of(decision: Decision) -> tuple[Message, ...]:
    """The messages of a decision that has them."""
    return tuple(
        Message("system" if role == "system" else "assistant" if role == "assistant" else "user", text)
        for role, text in decision.messages
    )
