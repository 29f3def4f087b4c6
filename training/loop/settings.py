"""What `mira train mira` reads: one TOML file, every key checked, every constant of the paper by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agent.config import Limits
from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, merged, read_toml, source_of
from envs.core.record import Record
from training.engine.settings import Compute, Objective, Optimization
from training.loop.arms import ARMS, Arm
from training.loop.curriculum.settings import CurriculumSettings
from training.mira.replay import CAPACITY, Band
from training.mira.targets import TargetSettings
from training.serving.settings import ServerSettings


class TaskSettings(Record):
    """Instances of one suite."""

    suite: str = "miniwob"
    names: tuple[str, ...] = ()
    """Task names; empty takes all that may be trained on (the pool) or all of the split (an evaluation)."""
    split: str = ""
    """In place of names, where the suite has splits."""


class PoolSettings(TaskSettings):
    """The tasks that phases choose from, see :mod:`training.loop.curriculum`."""

    size: int = Field(default=1_500, ge=1)


class RaySettings(Record):
    """Rollouts by workers of a Ray cluster, see :class:`training.rollouts.ray_pool.RayPool`."""

    workers: int = Field(ge=1)
    address: str = ""
    """Of a running cluster, or `auto`; empty starts one on this machine."""
    shard_size: int = Field(default=8, ge=1)
    """Instances that a worker takes at once."""
    shard_deadline_s: float = Field(default=3_600.0, gt=0)
    """A worker that takes longer with its shard is replaced."""


class RolloutSettings(Record):
    """How the policy plays to learn."""

    tasks: int = Field(default=200, ge=1)
    """Task instances of a phase."""
    attempts: int = Field(default=1, ge=1)
    temperature: float = Field(default=1.0, gt=0, le=2)
    """The paper's is 1."""
    workers: int = Field(default=2, ge=1)
    limits: Limits = Limits(max_steps=15, max_seconds=120, max_parse_errors=2)
    prompt_style: Literal["compact", "full"] = "compact"
    server: ServerSettings | None = None
    """Policies play on a vLLM server, evaluations too; None: in this process."""
    ray: RaySettings | None = None
    """Play on a cluster whose machines see the training folder and the start under these paths; None: in this process.
    Evaluations stay here."""
    show_plan: bool = False
    """Tell the policy its milestones; off, they only shape the reward."""


class EvaluationSettings(TaskSettings):
    """How a phase's policy is measured: greedy, on instances that are never trained on."""

    seeds: tuple[int, ...] = tuple(range(10))
    every: int = Field(default=1, ge=1)
    """Phases between two measurements; the start and the last phase are always measured."""
    planner: str = "none"
    """`none`, `reference`, `same` (the policy plans for itself), or a model spec. A model that plans also rates its
    milestones; whether an episode succeeded is for the suite's checker alone."""
    attempts: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.0, ge=0, le=2)


class ReplaySettings(Record):
    """Past successes that are learned from again (MiRA paper, Alg. 2)."""

    band: Band = Band()
    unit: Literal["trajectory", "step"] = "trajectory"
    """What a perplexity is of: MiRA's trajectories, or single steps as in WebRL's code."""
    capacity: int = Field(default=CAPACITY, ge=1)
    per_new: float = Field(default=2.0, ge=0)
    """At most so many replayed trajectories for each new one (WebRL's code: 2); 0 replays nothing."""


HEAD_RATE = 1e-4


class CriticSettings(Record):
    """A critic's stage."""

    optimization: Optimization
    head_rate: float | None = Field(default=None, gt=0)
    """Learning rate of the head, whose last layer begins at 0; None: `HEAD_RATE`, or the trunk's where that is higher.
    Published rates of 1e-6 are for trunks of 8 to 12 billion parameters and would leave it there."""
    keep: bool = True
    """Go on training the critic of the phase before; off, each phase begins from the policy's trunk."""
    folds: int = Field(default=1, ge=1, le=10)
    """Of the value critic: above 1, advantages are taken from critics that have not learned from the row's own task
    (cross-fitting). One that has knows how the episode ended, and its advantages vanish."""

    @property
    def rate_of_head(self) -> float:
        return self.head_rate or max(HEAD_RATE, self.optimization.learning_rate)


class ActorSettings(Record):
    """The actor's stage."""

    objective: Objective = Objective()
    optimization: Optimization
    keep: Literal["all", "successes", "positive", "digirl"] = "all"
    """Rows that are learned from: all; those of successes; those with a positive advantage; DigiRL's, see
    :func:`training.loop.advantage_columns.select_rows`."""
    max_advantage: float = Field(default=20.0, gt=0)
    """An advantage beyond this stops the loop: with rewards of at most 1, something has exploded."""


class LoopSettings(Record):
    """One training run of one arm."""

    arm: Arm = "mira"
    start: str = "embedded"
    """The checkpoint that every arm starts from: a folder, or `embedded`."""
    seed: int = 0
    phases: int = Field(default=6, ge=0)
    pool: PoolSettings = PoolSettings()
    rollouts: RolloutSettings = RolloutSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    curriculum: CurriculumSettings = CurriculumSettings(overlap=False)
    replay: ReplaySettings = ReplaySettings()
    targets: TargetSettings = TargetSettings()
    potential: CriticSettings = CriticSettings(optimization=Optimization(learning_rate=2e-4, epochs=3, batch_rows=32))
    value: CriticSettings = CriticSettings(optimization=Optimization(learning_rate=2e-4, epochs=1, batch_rows=32))
    actor: ActorSettings = ActorSettings(optimization=Optimization(learning_rate=1e-4, epochs=1, batch_rows=64))
    compute: Compute = Compute()
    shared: Path | None = None
    """Folder in which arms keep rollouts and evaluations for each other: the same policy on the same tasks with the
    same seed is played once."""
    demonstrations: tuple[Path, ...] = ()
    """Runs of an oracle: successes that the potential critic learns from in the first phase, and may be replayed."""
    launcher: tuple[str, ...] = ()
    """Runs the stages, e.g. `["accelerate", "launch", "--num_processes", "8", "-m"]`; empty trains in this process."""
    report_to: tuple[str, ...] = ()
    """Trackers of transformers, such as `tensorboard`."""

    @property
    def needs_value(self) -> bool:
        return ARMS[self.arm].value

    @property
    def needs_potential(self) -> bool:
        return ARMS[self.arm].value and self.targets.alpha > 0


SET = "--set"


def parse_settings(
    values: Mapping[str, Any], source: str, below: Mapping[str, Any] | None = None, over: Layer | None = None
) -> LoopSettings:
    """*values* over what their arm says over *below* over the defaults. Raises BadInput naming the first bad key, and
    *source*, or *over* where it is from there."""
    arm = values.get("arm", "mira")
    if not isinstance(arm, str) or arm not in ARMS:
        where = source_of(("arm",), source, over)
        raise BadInput(f"{where}: unknown arm {arm!r}; there are {', '.join(ARMS)}")
    found = LoopSettings().model_dump(mode="json")
    for layer in (below or {}, ARMS[arm].changes, values):
        found = merged(found, layer)
    return checked(LoopSettings, found, source, over)


def load_settings(path: Path | None, changes: Sequence[str] = ()) -> LoopSettings:
    """Reads a TOML file, if any. What makes an arm that arm wins over the file, what the file says under `arms.NAME`
    over that, and *changes*, `key=value` each, over all. Raises BadInput, also for a mistake in an arm that is not
    chosen."""
    source = str(path or SET)
    file, given = values_of(path, ()), values_of(None, changes)
    if "arms" in given:
        raise BadInput("--set arms: unknown key; set the key itself, it wins over the arm's")
    own = file.pop("arms", {})
    if not isinstance(own, dict) or not all(isinstance(table, dict) for table in own.values()):
        raise BadInput(f"{source}: arms: a table of settings for each arm, such as [arms.awr.actor.objective]")
    for arm, table in own.items():
        if "arm" in table:
            raise BadInput(f"{source}: arms.{arm}.arm: unknown key")
        parse_settings({**table, "arm": arm}, f"{source}: arms.{arm}", file)
    arm = given.get("arm", file.get("arm", "mira"))
    its = own.get(arm, {}) if isinstance(arm, str) else {}
    return parse_settings(merged(merged(its, given), {"arm": arm}), source, file, Layer(SET, given))


def values_of(path: Path | None, changes: Sequence[str]) -> dict[str, Any]:
    """The plain values of a TOML file with *changes* over them. Raises BadInput."""
    values = {} if path is None else read_toml(path)
    for text in changes:
        values = merged(values, override(text))
    return values


def override(text: str) -> dict[str, Any]:
    """`targets.alpha=0.1` as nested values. Raises BadInput where it is no `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"{SET} {text!r} is no key=value: write for example targets.alpha=0.1")
    try:
        found: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        found = value
    for part in reversed(key.strip().split(".")):
        found = {part: found}
    return found
