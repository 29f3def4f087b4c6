"""An episode as training sees it: one decision a step, the milestones done at each state, the outcome.

Only what the trace holds. A local policy's token ids are taken as they were sampled and never made again from text: a
tokenizer need not give the same ids back (re-tokenisation drift). Where a policy was not local, the prompt that it was
sent and its answer are kept as text, for the tokenizer of whoever learns from it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agent.episode.policy import deciding_call
from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import Call, Footer, Intent
from envs.core.trace_store import BlobStore, Trace
from models.base import Message
from training.data.provenance import Provenance


class LeftOut(StrEnum):
    """Why an episode is not learned from."""

    UNFINISHED = "unfinished"
    BROKEN = "broken"
    """The world or a model failed: nothing is known about the policy."""
    UNJUDGED = "unjudged"
    NO_DECISION = "no decision"
    """It ended before its first step."""
    NO_PROMPT = "no prompt"
    """A step does not say what the policy was shown: a script played it."""
    FAILED = "failed"
    """Only successes were asked for; :func:`select` keeps it."""
    HELD_OUT = "held out for evaluation"
    """Policies are measured on its instance; :func:`select` keeps it."""


class Tokens(Record):
    """A decision as its model sampled it."""

    prompt: tuple[int, ...]
    action: tuple[int, ...]
    logprobs: tuple[float, ...] | None = None
    """Natural-log probability of each action token when it was sampled; as long as `action`."""


class Decision(Record):
    """One step: the state, as the policy was shown it, and the action, as it said it."""

    step: int
    """`Intent.step` of the trace, 1-based."""
    tokens: Tokens | None
    """None where the policy was not local; then `messages` is set."""
    messages: tuple[tuple[str, str], ...] = ()
    """(role, text) of the prompt; with `tokens` only where they were asked for."""
    said: str
    """The action as text."""
    ok: bool
    """The action was carried out."""


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
    """The checker's, 0 to 1."""
    milestones: int
    """K; 0 where the episode had no plan, or changed it on the way: counts of two plans cannot be put together."""
    done: tuple[int, ...]
    """Milestones done at times 0 … T, one more than decisions: before the first action … after the last."""
    decisions: tuple[Decision, ...]
    unreadable: int = 0
    """Answers that held no action: nothing is learned from them."""

    @property
    def identity(self) -> str:
        """Equal for episodes that did the same in the same task: the replay buffer keeps one of them."""
        told = json.dumps([self.task.id, *(decision.said for decision in self.decisions)])
        return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Selection:
    """What was kept of a set of traces, and why the rest was not."""

    kept: tuple[Trajectory, ...]
    left_out: Counter[LeftOut]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def successes(self) -> int:
        return sum(trajectory.success for trajectory in self.kept)


def select(traces: Iterable[tuple[Trace, BlobStore]], *, texts: bool = False) -> Selection:
    """Reads *traces* in their order. *texts*: prompts as text beside their token ids, for a learner with another
    tokenizer. Raises TraceError for a trace that was edited after it was written, and for a blob that is missing or
    damaged."""
    kept: list[Trajectory] = []
    left_out: Counter[LeftOut] = Counter()
    provenance = Provenance()
    for trace, blobs in traces:
        provenance.add(trace)
        found = trajectory(trace, blobs, texts=texts)
        if isinstance(found, LeftOut):
            left_out[found] += 1
        else:
            kept.append(found)
    return Selection(tuple(kept), left_out, provenance)


def trajectory(trace: Trace, blobs: BlobStore, *, texts: bool = False) -> Trajectory | LeftOut:
    """The episode, or why there is nothing to learn from it."""
    footer = trace.footer
    if footer is None:
        return LeftOut.UNFINISHED
    if footer.outcome in ("broken", "unjudged"):
        return LeftOut.BROKEN if footer.outcome == "broken" else LeftOut.UNJUDGED
    steps = [step for step in trace.steps if step.commit is not None]
    if not steps:
        return LeftOut.NO_DECISION
    decisions = [
        _decision(step.intent, blobs, ok=step.commit is not None and step.commit.result.ok, texts=texts)
        for step in steps
    ]
    if any(decision is None for decision in decisions):
        return LeftOut.NO_PROMPT
    intents = [step.intent for step in steps]
    done = _done(trace, intents, footer)
    header = trace.header
    return Trajectory(
        run_id=header.run_id,
        episode_id=header.episode_id,
        task=header.task,
        attempt=header.attempt,
        category=header.category,
        policy=str(header.config.get("policy", "")),
        success=footer.outcome == "success",
        reward=footer.score.reward if footer.score is not None else float(footer.outcome == "success"),
        milestones=len(intents[0].rating.z) if done else 0,
        done=done or (0,) * (len(steps) + 1),
        decisions=tuple(decision for decision in decisions if decision is not None),
        unreadable=_unreadable(trace),
    )


def _unreadable(trace: Trace) -> int:
    """Those that were repaired or drawn again, beside the action that came of it, and those that no action came of."""
    calls = [call for step in trace.steps for call in step.intent.calls]
    calls += [call for event in trace.events for call in event.calls]
    return sum(call.role == "policy" and call.error is not None for call in calls)


def _decision(intent: Intent, blobs: BlobStore, *, ok: bool, texts: bool) -> Decision | None:
    """From the call that gave the action."""
    call = deciding_call(call for call in intent.calls if call.role == "policy")
    if call is None:
        return None
    if call.prompt_token_ids and call.completion_token_ids:
        tokens = Tokens(prompt=call.prompt_token_ids, action=call.completion_token_ids, logprobs=call.logprobs)
        messages = _messages(call, blobs) if texts else ()
        return Decision(step=intent.step, tokens=tokens, messages=messages, said=call.completion, ok=ok)
    messages = _messages(call, blobs)
    return Decision(step=intent.step, tokens=None, messages=messages, said=call.completion, ok=ok) if messages else None


def _messages(call: Call, blobs: BlobStore) -> tuple[tuple[str, str], ...]:
    if call.prompt_blob is None:
        return ()
    rows: list[dict[str, Any]] = json.loads(blobs.text(call.prompt_blob))
    return tuple((str(row["role"]), str(row["text"])) for row in rows)


def _done(trace: Trace, intents: Sequence[Intent], footer: Footer) -> tuple[int, ...]:
    """Milestones done at each state; empty without a plan, or where it changed on the way."""
    plans = {tuple(milestone.text for milestone in plan.milestones) for plan in trace.plans}
    vectors = [intent.rating.z for intent in intents]
    final = _final(trace, footer, len(vectors[0]))
    vectors.append(final if final is not None else vectors[-1])
    if not vectors[0] or len(plans) > 1 or len({len(z) for z in vectors}) > 1:
        return ()
    return tuple(sum(z) for z in vectors)


def _final(trace: Trace, footer: Footer, total: int) -> tuple[bool, ...] | None:
    """After the last action: the checkers' word where they speak of this plan, else the rater's. They speak of the
    task's own milestones, which a model's plan may be as many as."""
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
