"""What a phase starts from, and what it tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent.progress import Listener
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.engine.progress import Watcher, unwatched
from training.engine.scoring import ScoreKind, score, score_launched
from training.loop.settings import LoopSettings

LogFunction = Callable[[str], None]


def phase_seed(settings: LoopSettings, number: int) -> int:
    """Another one for every phase of every seed."""
    return settings.seed * 1_000 + number


@dataclass(frozen=True, slots=True)
class PhaseContext:
    """What a phase starts from."""

    settings: LoopSettings
    number: int
    folder: Path
    policy: Path
    """The checkpoint that plays, and that the actor starts from."""
    critics: Mapping[str, Path]
    """Those of the phase before, by the names of their folders; none in the first."""
    past: tuple[Trajectory, ...]
    """Of all phases before, and demonstrations before those, the oldest first."""
    demonstrations: tuple[Trajectory, ...] = ()
    """Successes that the potential critic learns from in the first phase."""
    listeners: tuple[Listener, ...] = ()
    tell: LogFunction = print
    watch: Watcher = unwatched
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """What each part took, noted as it ends."""

    @property
    def seed(self) -> int:
        """Of everything that is drawn in this phase."""
        return phase_seed(self.settings, self.number)

    def score(self, asked: ScoreKind, checkpoint: Path, rows: Sequence[Row]) -> tuple[float, ...]:
        """What a policy or critic says of *rows*, on the machine that the stages run on."""
        compute, launcher = self.settings.compute, self.settings.launcher
        if not launcher:
            return score(asked, checkpoint, rows, compute, self.watch)
        return score_launched(asked, checkpoint, rows, compute, launcher=launcher, folder=self.folder / "scoring")

    @contextmanager
    def part(self, name: str, told: str) -> Generator[None]:
        """Says what is done, and notes how long it took."""
        self.tell(f"phase {self.number}: {told}")
        begun = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - begun, 2)
