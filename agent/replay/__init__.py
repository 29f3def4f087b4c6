"""Replay: does a trace again against the live site, and says step by step what is the same and what is not.

    replay = await replay_trace("runs/ID/episodes/E.jsonl")
    print(replay.same_outcome, [step.verdict for step in replay.steps])

Promised: an element is found by its durable key or reported missing, never replaced by another one; every wait is
bounded; a person's "no" is respected again; nothing is sent to a live site unless `may_act` says so. Not promised: the
same pixels. Clicks at coordinates go where they went.

`branch_trace` hands over to another policy in the middle: see :mod:`agent.replay.branching`.
"""

from agent.replay.playback import replay_trace
from agent.replay.records import Replay, ReplayedStep, Verdict
from agent.replay.resolve import How, Match, resolve
from agent.replay.steps import ReplayOptions

__all__ = ["How", "Match", "Replay", "ReplayOptions", "ReplayedStep", "Verdict", "replay_trace", "resolve"]
