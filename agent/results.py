"""Results of a run: one row per episode, and one record for the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field

from agent.inspection.expert_steps import Assisted, ExpertSteps
from envs.core.actions import AFTER_LAST_STEP, DOWNLOADS, says_impossible
from envs.core.masked_values import masked_values
from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import Degraded, EndedBy, Failure, Footer, Header, Outcome, Role, Totals
from envs.security.blocked_requests import BlockedOrigin, merge_blocked_origins

_IDENTITY: Final = frozenset({"run_id", "episode_id", "task", "trace", "folder"})
"""Fields that the run's own names fill, not a page, a model or a person's task."""


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
    impossible: bool = False
    """The policy ended the episode with the answer `N/A`: it says that the task cannot be done."""
    reward: float | None = None
    """Reward of the checker, 0 to 1; None without a checker."""
    z: tuple[bool, ...] = ()
    """Milestones reached at the end; empty without subgoals."""
    failure: Failure | None = None
    declined: int = 0
    """Actions that were not sent because a person declined them, or nobody was there to ask."""
    expert_steps: int | None = None
    """See :attr:`envs.core.trace.Footer.expert_steps`."""
    degraded: Degraded = Degraded()
    """Errors of planner and rater, without whose answers the episode went on."""
    error: str | None = None
    resumable: bool = False
    """A model failed, or a resume could not restore the environment: `mira resume` continues the episode, or judges it
    again."""
    refused: Role | None = None
    """See :attr:`envs.core.trace.Footer.refused`."""
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """Requests that the allowlist proxy refused, by origin."""
    totals: Totals = Totals()
    trace: str
    """Path of the trace relative to the run's folder."""
    folder: Path | None = Field(default=None, exclude=True)
    """The run's folder. Set in returned results only and never stored, because folders are moved."""

    @property
    def trace_path(self) -> Path:
        """Path of the trace. Raises ValueError if the run's folder is not known."""
        if self.folder is None:
            raise ValueError(f"the folder of run {self.run_id} is not known")
        return self.folder / self.trace

    @classmethod
    def of(cls, header: Header, footer: Footer) -> EpisodeResult:
        """Builds the row from the header and the footer of a trace."""
        return cls(
            run_id=header.run_id,
            episode_id=header.episode_id,
            task=header.task,
            attempt=header.attempt,
            instruction=header.instruction,
            outcome=footer.outcome,
            ended_by=footer.ended_by,
            answer=footer.answer,
            impossible=footer.ended_by == "stop" and says_impossible(footer.answer),
            reward=None if footer.score is None else footer.score.reward,
            z=() if footer.rating is None else footer.rating.z,
            failure=footer.failure,
            declined=footer.declined,
            expert_steps=footer.expert_steps,
            degraded=footer.degraded,
            error=footer.error,
            resumable=footer.resumable,
            refused=footer.refused,
            blocked_requests=footer.blocked_requests,
            totals=footer.totals,
            trace=f"episodes/{header.episode_id}.jsonl",
        )

    def masked(self, mask: Callable[[str], str]) -> EpisodeResult:
        """Returns a copy whose texts are masked, so that no declared secret is stored. Only what identifies run, task
        and trace stays as it is."""
        identity = {name: getattr(self, name) for name in _IDENTITY}
        return EpisodeResult.model_validate(masked_values(self, mask) | identity)


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run that ended, or that was interrupted and can be resumed."""

    run_id: str
    folder: Path
    episodes: tuple[EpisodeResult, ...]
    """Finished episodes in the order of the selection (task, seed, attempt)."""
    planned: int
    """Number of episodes in the run."""
    seconds: float
    """Wall seconds of this process; processes before a resume are not included."""

    @property
    def complete(self) -> bool:
        """False after an interruption: `mira resume` runs the remaining episodes."""
        return len(self.episodes) == self.planned

    @property
    def resumable(self) -> int:
        """Number of episodes that were cut off (`EpisodeResult.resumable`) and that `mira resume` continues."""
        return sum(episode.resumable for episode in self.episodes)

    @property
    def degraded(self) -> int:
        """Number of episodes in which planner or rater failed at least once; they count like any other."""
        return sum(bool(episode.degraded) for episode in self.episodes)

    @property
    def expert_steps(self) -> ExpertSteps | None:
        """Steps that an expert took in place of the policy; None without an expert."""
        return ExpertSteps.of(
            Assisted(one.totals.steps, one.expert_steps) for one in self.episodes if one.expert_steps is not None
        )

    @property
    def downloads(self) -> tuple[Path, ...]:
        """Files that the episodes downloaded, by name; those of all episodes are in one folder. Empty if the folder
        cannot be read."""
        folder = self.folder / DOWNLOADS
        with suppress(OSError):
            return tuple(sorted(path for path in folder.iterdir() if path.name != AFTER_LAST_STEP))
        return ()

    @property
    def blocked_requests(self) -> tuple[BlockedOrigin, ...]:
        """Refused origins of all episodes, summed by origin."""
        return merge_blocked_origins(origin for episode in self.episodes for origin in episode.blocked_requests)
