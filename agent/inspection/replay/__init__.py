"""Replay: repeats a trace on the live site and compares every step with the recorded one.

    replay = await replay_trace("runs/ID/episodes/E.jsonl")
    print(replay.same_outcome, [step.verdict for step in replay.steps])

Guarantees: an element is found by its durable key or reported missing, never replaced by another one; every wait is
bounded; an action that a person declined is not sent; nothing is sent to a live site unless `may_act` is set. Pixels
are not guaranteed to be the same: clicks at coordinates go to the recorded coordinates.

`branch_trace` continues with another policy from a step, `heal_trace` where a step cannot be repeated. Importing this
package is cheap, as with :mod:`agent`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from agent.inspection.replay.records import Replay, ReplayedStep, Verdict
from agent.inspection.replay.resolve import How

if TYPE_CHECKING:
    from agent.inspection.replay.branching import branch_trace, heal_trace
    from agent.inspection.replay.playback import replay_trace
    from agent.inspection.replay.steps import ReplayOptions

__all__ = ["How", "Replay", "ReplayOptions", "ReplayedStep", "Verdict", "branch_trace", "heal_trace", "replay_trace"]

_LATER = {
    "ReplayOptions": "agent.inspection.replay.steps",
    "branch_trace": "agent.inspection.replay.branching",
    "heal_trace": "agent.inspection.replay.branching",
    "replay_trace": "agent.inspection.replay.playback",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
