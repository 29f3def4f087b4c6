"""Reads the rollouts on which the potential critic is trained before the first phase: other agents' successes, with the
prompts that the loop's own policy would have had (MiRA paper, §5.3: P is pre-trained on rollouts of 1,237 tasks)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agent.episode.profile_prompts import names_control, render_prompt
from agent.profiles.profile import named
from agent.run.discover_traces import discover_traces
from envs.core.trace_store import BlobStore, Trace
from training.data.trace_views import policy_views
from training.data.trajectories import LeftOut, Trajectory, trajectory
from training.loop.settings import RolloutSettings


def pretraining_episodes(places: Sequence[Path], rollouts: RolloutSettings) -> tuple[Trajectory, ...]:
    """The successes with milestones below *places*, whoever played them.

    The prompts are rendered again from the recorded pages, by the profile of *rollouts*, because critics read the
    policy's prompts. Steps without a recorded prompt leave out their episode. Raises BadInput where a place holds no
    trace, TraceError for one that was edited after it was written.
    """
    return tuple(episode for file in discover_traces(places) for episode in _own(file.read(), file.blobs, rollouts))


def _own(trace: Trace, blobs: BlobStore, rollouts: RolloutSettings) -> Iterator[Trajectory]:
    episode = trajectory(trace, blobs)
    if isinstance(episode, LeftOut) or not (episode.success and episode.milestones):
        return
    profile = named(rollouts.profile)
    most = rollouts.max_actions_per_turn if profile.style == "full" else 1
    prompts: dict[int, tuple[tuple[str, str], ...]] = {}
    for intent, view in policy_views(trace, blobs):
        shown = view if rollouts.show_plan else replace(view, milestones=(), z=(), next_milestone=None)
        shown = replace(shown, max_actions=most, names_control=names_control(profile, view.language, most))
        messages = render_prompt(profile, shown)
        prompts[intent.step] = tuple((message.role, message.text) for message in messages)
    decisions = tuple(
        decision.model_copy(update={"tokens": None, "messages": prompts[decision.step]})
        for decision in episode.decisions
    )
    yield episode.model_copy(update={"decisions": decisions})
