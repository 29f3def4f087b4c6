"""The context of a phase: settings, folder, policy, critics, seed, logging and timing."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent.progress import Listener
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.engine.progress import Watcher, unwatched
from training.engine.scoring import ScoreKind, TokenScores
from training.engine.stage_runner import StageRunner, stage_runner
from training.loop.durations import read_seconds, timed
from training.loop.settings import LoopSettings

LogFunction = Callable[[str], None]


def phase_seed(settings: LoopSettings, number: int) -> int:
    """The seed of a phase, different for every phase of every training seed."""
    return settings.seed * 1_000 + number


@dataclass(frozen=True, slots=True)
class PhaseContext:
    """The inputs that the parts of a phase share."""

    settings: LoopSettings
    number: int
    folder: Path
    policy: Path
    """The checkpoint that plays and that the actor's stage starts from."""
    critics: Mapping[str, Path]
    """The previous phase's critics, by the names of their folders; empty in the first phase."""
    start: Path
    """The checkpoint of phase 0, from which a KL penalty measures."""
    past: tuple[Trajectory, ...]
    """Demonstrations and trajectories of all previous phases, the oldest first."""
    demonstrations: tuple[Trajectory, ...] = ()
    """Successes that the potential critic learns from in the first phase."""
    pretraining: tuple[Trajectory, ...] = ()
    """Other agents' successes, on which the potential critic is trained before the first phase's."""
    listeners: tuple[Listener, ...] = ()
    log: LogFunction = print
    watch: Watcher = unwatched
    _runners: list[StageRunner] = field(default_factory=list[StageRunner])

    @property
    def seconds(self) -> dict[str, float]:
        """Wall seconds of each part so far, also in earlier processes of a resumed phase."""
        return read_seconds(self.folder)

    @property
    def seed(self) -> int:
        """Seed of all random draws in this phase."""
        return phase_seed(self.settings, self.number)

    def score(self, kind: ScoreKind, checkpoint: Path, rows: Sequence[Row]) -> tuple[float, ...]:
        """Scores *rows* with a policy or critic, in the processes in which the stages run."""
        return self.runner.score(kind, checkpoint, rows, self.settings.compute)

    def token_scores(self, checkpoint: Path, rows: Sequence[Row]) -> TokenScores:
        """A policy's log-probability of every completion token of *rows*, computed like :meth:`score`."""
        return self.runner.token_scores(checkpoint, rows, self.settings.compute)

    @property
    def runner(self) -> StageRunner:
        """Runs the stages and scoring passes. Raises ValueError outside :meth:`running`."""
        if not self._runners:
            raise ValueError("stages run within PhaseContext.running")
        return self._runners[-1]

    @contextmanager
    def running(self) -> Generator[None]:
        """Keeps the processes and models of the phase's stages and scoring passes during the body."""
        with stage_runner(self.settings.launcher, self.folder, self.watch) as runner:
            self._runners.append(runner)
            try:
                yield
            finally:
                self._runners.pop()

    @contextmanager
    def part(self, name: str, description: str) -> Generator[None]:
        """Logs the *description* of a part and adds its duration to `seconds`."""
        self.log(f"phase {self.number}: {description}")
        with timed(self.folder, name):
            yield
