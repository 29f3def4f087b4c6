"""Restores the policy's view of each step of a trace, so that its prompt can be rendered with another plan or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.episode.changed_pages import idle_actions
from agent.episode.prompts import PolicyView
from envs.core.action_languages import PROGRAM
from envs.core.actions import ActionResult
from envs.core.observation import Observation
from envs.core.past_actions import PastAction
from envs.core.trace import Intent, ObservationRecord
from envs.core.trace_store import BlobStore, Trace


def policy_views(trace: Trace, blobs: BlobStore) -> Iterator[tuple[Intent, PolicyView]]:
    """Every step with its view, in order. A trace holds no tabs, open dialogs or values of `elements`, so the view has
    none either."""
    history: list[PastAction] = []
    problems: tuple[str, ...] = ()
    last: ActionResult | None = None
    for intent, commit in trace.steps:
        if history:
            history[-1] = replace(history[-1], changed=intent.changed)
        plan = next((p for p in reversed(trace.plans) if p.step <= intent.step), None)
        yield (
            intent,
            PolicyView(
                instruction=trace.header.instruction,
                observation=seen_page(intent.seen, blobs),
                language=PROGRAM,
                milestones=plan.milestones if plan is not None else (),
                z=intent.rating.z,
                next_milestone=intent.rating.next_milestone,
                history=tuple(history),
                problems=problems,
                last=last,
                idle=idle_actions(history),
            ),
        )
        last = None if commit is None else commit.result
        if commit is not None:
            target = intent.target
            key = None if target is None else target.key
            history.append(PastAction(intent.action, key, commit.result))
            problems = (commit.result.output,) if commit.result.output else ()


def seen_page(seen: ObservationRecord, blobs: BlobStore) -> Observation:
    """The observation of a recorded page: its text, address and size, without elements and tabs."""
    return Observation(
        url=seen.url,
        title=seen.title,
        text=blobs.text(seen.text_blob),
        elements=(),
        tabs=(),
        digest=seen.digest,
        viewport=seen.viewport or (0, 0),
        scroll=(0, 0),
        controls_total=seen.controls_total,
    )
