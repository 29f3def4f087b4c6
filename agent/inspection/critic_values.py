"""Critics' values of a run's states, in the run's folder: training writes them, the report draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from envs.core.atomic_write import write_atomically
from envs.core.record import Record

FILE = "critics.json"


class StateValues(Record):
    """The critics' outputs for the state before one step, each in [0, 1]; None without such a critic."""

    step: int
    """`Intent.step` of the trace, 1-based; of an answer with several actions the first."""
    value: float | None = None
    """V: expected success, discounted if its target was."""
    potential: float | None = None
    """P: estimated progress."""


class CriticValues(Record):
    """The file `critics.json` of a run."""

    critics: str
    """Where the critics came from, for people."""
    episodes: Mapping[str, tuple[StateValues, ...]]
    """By episode id, in the order of steps."""


def write_critic_values(run: Path, critics: str, episodes: Mapping[str, Sequence[StateValues]]) -> None:
    """Writes the values of the episodes of the run in folder *run*, in place of any written before."""
    values = CriticValues(critics=critics, episodes={name: tuple(states) for name, states in episodes.items()})
    write_atomically(run / FILE, values.model_dump_json() + "\n", sync=False)


def read_critic_values(run: Path) -> CriticValues:
    """The values in the folder *run*; none without a readable file, because they only illustrate the run."""
    try:
        return CriticValues.model_validate_json((run / FILE).read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError):
        return CriticValues(critics="", episodes={})
