"""What a run gives back: one row per episode, and the run as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import EndedBy, Failure, Footer, Header, Outcome, Totals
from envs.security.blocked_requests import BlockedOrigin, summed


class EpisodeResult(Record):
    """One episode as a row of `results.jsonl`."""

    run_id: str
    episode_id: str
    task: TaskRef
    attempt: int
    instruction: str
    outcome: Outcome
    ended_by: EndedBy
    answer: str | None = None
    reward: float | None = None
    """The checker's, 0 to 1; None where nothing checked."""
    z: tuple[bool, ...] = ()
    """Milestones reached at the end; empty without subgoals."""
    failure: Failure | None = None
    declined: int = 0
    """Actions that were not sent because a person declined them, or nobody was there to ask."""
    error: str | None = None
    resumable: bool = False
    """A model gave no answer: `mira resume` plays it on, or judges it again."""
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """Refused by the boundary, by origin."""
    totals: Totals = Totals()
    trace: str
    """Path of the trace relative to the run's folder."""
    folder: Path | None = Field(default=None, exclude=True)
    """The run's folder, of what a run gives back; stored nowhere, because folders are moved."""

    @property
    def trace_path(self) -> Path:
        """The trace, to be opened. Raises ValueError where the run's folder is not known."""
        if self.folder is None:
            raise ValueError(f"the folder of run {self.run_id} is not known here")
        return self.folder / self.trace

    @classmethod
    def of(cls, header: Header, footer: Footer) -> EpisodeResult:
        """The row of the episode whose trace begins and ends with these."""
        return cls(
            run_id=header.run_id,
            episode_id=header.episode_id,
            task=header.task,
            attempt=header.attempt,
            instruction=header.instruction,
            outcome=footer.outcome,
            ended_by=footer.ended_by,
            answer=footer.answer,
            reward=None if footer.score is None else footer.score.reward,
            z=() if footer.rating is None else footer.rating.z,
            failure=footer.failure,
            declined=footer.declined,
            error=footer.error,
            resumable=footer.resumable,
            blocked_requests=footer.blocked_requests,
            totals=footer.totals,
            trace=f"episodes/{header.episode_id}.jsonl",
        )

    def masked(self, mask: Callable[[str], str]) -> EpisodeResult:
        """Without declared secrets, whatever a page or a model made of them."""
        texts = {name: getattr(self, name) for name in ("instruction", "answer", "error")}
        return self.model_copy(update={name: mask(text) for name, text in texts.items() if text is not None})


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run that ended, or that was interrupted and can be resumed."""

    run_id: str
    folder: Path
    episodes: tuple[EpisodeResult, ...]
    """Finished episodes in the order of the selection (task, seed, attempt)."""
    planned: int
    """Episodes the run consists of."""
    seconds: float
    """Wall seconds of this process, not of the sittings before a resume."""

    @property
    def complete(self) -> bool:
        """False after an interruption: `mira resume` plays the rest."""
        return len(self.episodes) == self.planned

    @property
    def resumable(self) -> int:
        """Episodes that a model left without an answer: `mira resume` continues them too."""
        return sum(episode.resumable for episode in self.episodes)

    @property
    def blocked_requests(self) -> tuple[BlockedOrigin, ...]:
        """Of all episodes together."""
        return summed(one for episode in self.episodes for one in episode.blocked_requests)
