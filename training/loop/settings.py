"""Settings of `mira train mira`: one TOML file with checked keys; the paper's constants have their names."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from pydantic import Field, field_validator, model_validator

from agent.config import Limits
from agent.profiles.names import profile_names, with_profile_for_style
from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, flattened, merged, read_toml, source_of
from envs.core.record import Record
from training.engine.settings import Compute, Objective, Optimization, with_renamed_compute
from training.loop.arms import ARMS, Arm
from training.loop.curriculum.settings import CurriculumSettings
from training.mira.credit import FailuresFrom, Normalizer
from training.mira.group_advantages import GroupSettings
from training.mira.replay import CAPACITY, Band
from training.mira.targets import TargetSettings
from training.serving.settings import ServerSettings


class TaskSettings(Record):
    """Instances of one suite."""

    suite: str = "miniwob"
    names: tuple[str, ...] = ()
    """Task names; empty: all training tasks (the pool), or, of an evaluation, those of its split (`sites`), the 30
    tasks `NAMED_TASKS` (`miniwob`), or all of an added suite without splits."""
    split: str = ""
    """A split in place of names, for suites with splits."""


class PoolSettings(TaskSettings):
    """The task pool of all phases, see :mod:`training.loop.curriculum`."""

    size: int = Field(default=1_500, ge=1)


class RaySettings(Record):
    """Rollouts by workers of a Ray cluster, see :class:`training.rollouts.ray_pool.RayPool`."""

    workers: int = Field(ge=1)
    address: str = ""
    """Address of a running cluster, or `auto`; empty starts one on this machine."""
    shard_size: int = Field(default=8, ge=1)
    """Instances per shard; a worker plays one shard at a time."""
    shard_deadline_s: float = Field(default=3_600.0, gt=0)
    """A worker that takes longer with its shard is replaced."""


_RENAMED: Final = {"rollouts": with_profile_for_style, "compute": with_renamed_compute}


def _renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """One layer of settings without the keys of earlier versions. Layers are renamed before they are merged, so that
    their precedence holds."""
    tables = {key: values[key] for key in _RENAMED if isinstance(values.get(key), Mapping)}
    return {**values, **{key: _RENAMED[key](cast("Mapping[str, Any]", table)) for key, table in tables.items()}}


class RolloutSettings(Record):
    """How the policy plays rollouts."""

    tasks: int = Field(default=200, ge=1)
    """Task instances per phase."""
    attempts: int = Field(default=1, ge=1)
    temperature: float = Field(default=1.0, gt=0, le=2)
    """The paper's is 1."""
    workers: int = Field(default=2, ge=1)
    limits: Limits = Limits(max_steps=15, max_seconds=120, max_parse_errors=2)
    profile: str = "compact"
    """Prompt profile of the policy, see :mod:`agent.profiles`. Answers have no reasons. Files of earlier versions have
    `prompt_style`: `compact`, or `full` for the profile `large`."""
    server: ServerSettings | None = None
    """Run policies on a vLLM server, for evaluations, too; None: in this process."""
    ray: RaySettings | None = None
    """Play on a cluster whose machines can access the training folder and the start under the same paths; None: in this
    process. Evaluations always run in this process."""
    max_actions_per_turn: int = Field(default=1, ge=1, le=20)
    """Most actions of one answer, with full prompts. An answer with several is one decision of its trajectory."""
    constrained: bool = False
    """Limit the answers of rollouts to valid actions; not with `server`. Recorded log-probabilities are those of the
    unconstrained policy, which the update changes; the actions are sampled from the constrained distribution."""
    show_plan: bool = False
    """Show the milestones to the policy; off, they only shape the reward."""
    planner: str = "reference"
    """Makes the milestones (MiRA paper, §5.1): `reference` (the suite's), `same` (the policy's model) or a model spec.
    """
    k: int = Field(default=4, ge=1, le=20)
    """Milestones that a model planner makes."""
    rater: str = ""
    """Says which milestones are done: `state` (the suite's checkers, which know the `reference` milestones only),
    `same` (the planner's model) or a model spec. Empty: `state` for the planner `reference`, else `same`."""
    judge: str = ""
    """Outcome judge that labels the rollouts (MiRA paper, App. A.3): `same` (the planner's model), the spec of a
    large model, or `orm:MODEL`, an outcome reward model that answers YES or NO (:mod:`judges.orm`). Empty: the suite's
    checkers do. The checker's score stands beside a judge's verdict in the traces; evaluations always use the
    checkers."""
    base_url: str | None = None
    """Server of `openai:` specs, also of the evaluation's planner; None is the provider's own."""

    @property
    def shows_milestones(self) -> bool:
        """Whether the policy's prompts show milestones."""
        return self.show_plan and self.planner != "none"

    @model_validator(mode="before")
    @classmethod
    def _keys_of_older_versions(cls, fields: Any) -> Any:
        return with_profile_for_style(cast("Mapping[str, Any]", fields)) if isinstance(fields, Mapping) else fields

    @field_validator("profile")
    @classmethod
    def _is_a_profile(cls, profile: str) -> str:
        if profile not in profile_names():
            raise ValueError(f"unknown prompt profile: use one of {', '.join(profile_names())}")
        return profile


class EvaluationSettings(TaskSettings):
    """How a phase's policy is evaluated: greedy, on held-out instances."""

    seeds: tuple[int, ...] = tuple(range(10))
    every: int = Field(default=1, ge=1)
    """Phases between two evaluations; the start and the last phase are always evaluated."""
    planner: str = "none"
    """`none`, `reference`, `same` (the policy's model plans), or a model spec. A model that plans also rates its
    milestones, or the rater of the rollouts does where it is their planner, too. The outcome is always decided by the
    suite's checker."""
    attempts: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.0, ge=0, le=2)

    @property
    def shows_milestones(self) -> bool:
        """Whether the policy's prompts show milestones."""
        return self.planner != "none"


class ReplaySettings(Record):
    """Replay of past successes (MiRA paper, Alg. 2)."""

    band: Band = Band()
    unit: Literal["trajectory", "step"] = "trajectory"
    """Unit of the perplexity filter: trajectories as in MiRA, or single steps as in WebRL's code."""
    capacity: int = Field(default=CAPACITY, ge=1)
    per_new: float = Field(default=2.0, ge=0)
    """Maximum number of replayed trajectories per new one (WebRL's code: 2); 0 replays nothing."""


HEAD_RATE = 1e-4


class CriticSettings(Record):
    """A critic's stage."""

    optimization: Optimization
    head_rate: float | None = Field(default=None, gt=0)
    """Learning rate of the head, whose last layer begins at 0; None: `HEAD_RATE`, or the trunk's if that is higher.
    Published rates of 1e-6 are for trunks of 8 to 12 billion parameters and would barely change the head."""
    keep: bool = True
    """Continue training the previous phase's critic; off, each phase starts from the policy's trunk."""
    milestones: bool = False
    """Show the critic how many milestones are done in its state, see :mod:`training.loop.critic_states`. The policy
    does not see it."""
    folds: int = Field(default=1, ge=1, le=10)
    """Folds of the value critic. Above 1, a row's value comes from a critic that was not trained on the row's task
    (cross-fitting). A critic that was trained on it knows the outcome, and advantages vanish."""

    @property
    def rate_of_head(self) -> float:
        return self.head_rate or max(HEAD_RATE, self.optimization.learning_rate)


class ActorSettings(Record):
    """The actor's stage."""

    objective: Objective = Objective()
    optimization: Optimization
    keep: Literal["all", "successes", "positive", "digirl"] = "all"
    """Rows to train on: all; those of successes; those with a positive advantage; DigiRL's, see
    :func:`training.loop.advantage_columns.select_rows`."""
    failures_from: FailuresFrom = "start"
    """First step of a failure that the actor learns from, see :data:`training.mira.credit.FailuresFrom`. Steps before
    it are left out; the critics still learn from them."""
    normalizer: Normalizer = "constant"
    """What a step of a long trajectory weighs in the loss, see :data:`training.mira.credit.Normalizer`."""
    max_advantage: float = Field(default=20.0, gt=0)
    """A larger advantage stops the loop: rewards are at most 1, so the critics have diverged."""


class LoopSettings(Record):
    """Settings of one training run of one arm."""

    arm: Arm = "mira"
    start: str = "embedded"
    """The checkpoint that every arm starts from: a folder, a GGUF file, or `embedded`."""
    seed: int = 0
    phases: int = Field(default=6, ge=0)
    pool: PoolSettings = PoolSettings()
    rollouts: RolloutSettings = RolloutSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    curriculum: CurriculumSettings = CurriculumSettings(overlap=False)
    replay: ReplaySettings = ReplaySettings()
    targets: TargetSettings = TargetSettings()
    groups: GroupSettings = GroupSettings()
    """For arms with group-relative advantages."""
    potential: CriticSettings = CriticSettings(optimization=Optimization(learning_rate=2e-4, epochs=3, batch_rows=32))
    value: CriticSettings = CriticSettings(optimization=Optimization(learning_rate=2e-4, epochs=1, batch_rows=32))
    actor: ActorSettings = ActorSettings(optimization=Optimization(learning_rate=1e-4, epochs=1, batch_rows=64))
    compute: Compute = Compute()
    shared: Path | None = None
    """Folder of rollouts and evaluations that arms share: the same policy, tasks and seed are played once."""
    demonstrations: tuple[Path, ...] = ()
    """Runs of an oracle. The potential critic learns from their successes in the first phase, and they may be replayed.
    """
    pretraining: tuple[Path, ...] = ()
    """Runs of any agents. The potential critic is trained on their successes with milestones before the first phase,
    and continues from there; the policy does not learn from them. See :mod:`training.loop.pretraining`."""
    launcher: tuple[str, ...] = ()
    """Command that runs the stages, e.g. `["accelerate", "launch", "--num_processes", "8", "-m"]`; empty: this process.
    """
    retain: Literal["all", "actors", "last"] = "actors"
    """Checkpoints that stay when the next phase is done: all; the actors (the next phase continues the critics, which
    are then read no more); or none, so that only the last phase has checkpoints."""
    report_to: tuple[str, ...] = ()
    """Trackers of transformers, such as `tensorboard`."""

    @property
    def grouped(self) -> bool:
        """Whether advantages are relative to the attempts at the same task instance."""
        return ARMS[self.arm].groups

    @property
    def keeps_rejected(self) -> bool:
        """Whether answers without an action are read from the traces."""
        return self.grouped and self.groups.unreadable

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
    """Merges, in increasing precedence: defaults, *below*, the arm's changes, *values*. Raises BadInput that names the
    first bad key and its source: *source* or *over*."""
    arm = values.get("arm", "mira")
    if not isinstance(arm, str) or arm not in ARMS:
        where = source_of(("arm",), source, over)
        raise BadInput(f"{where}: unknown arm {arm!r}; there are {', '.join(ARMS)}")
    settings = LoopSettings().model_dump(mode="json")
    for layer in (below or {}, ARMS[arm].changes, values):
        settings = merged(settings, layer)
    return checked(LoopSettings, settings, source, over)


def load_settings(
    path: Path | None, changes: Sequence[str] = (), log: Callable[[str], None] | None = None
) -> LoopSettings:
    """Reads a TOML file, if any. The arm's changes override the file, the file's table `arms.NAME` overrides those, and
    *changes*, `key=value` each, override all. *log* gets a line for each value of the file that the arm overrides.
    Raises BadInput, also for a mistake in an arm that is not selected."""
    source = str(path or SET)
    file, options = values_of(path, ()), values_of(None, changes)
    if "arms" in options:
        raise BadInput("--set arms: unknown key; set the key itself, it overrides the arm's")
    own = file.pop("arms", {})
    if not isinstance(own, dict) or not all(isinstance(table, dict) for table in own.values()):
        raise BadInput(f"{source}: arms: a table of settings for each arm, such as [arms.awr.actor.objective]")
    own = {arm: _renamed(table) for arm, table in own.items()}
    for arm, table in own.items():
        if "arm" in table:
            raise BadInput(f"{source}: arms.{arm}.arm: unknown key")
        parse_settings({**table, "arm": arm}, f"{source}: arms.{arm}", file)
    arm = options.get("arm", file.get("arm", "mira"))
    table = own.get(arm, {}) if isinstance(arm, str) else {}
    over = merged(merged(table, options), {"arm": arm})
    settings = parse_settings(over, source, file, Layer(SET, options))
    given, above = flattened(file), flattened(over)
    for key, value in flattened(ARMS[settings.arm].changes).items():
        if log is not None and key in given and key not in above and given[key] != value:
            log(
                f"arm {settings.arm!r} sets {key} to {value!r}, and {given[key]!r} of {source} has no effect: to change"
                f" it, set it in the table [arms.{settings.arm}] or with {SET}"
            )
    return settings


def values_of(path: Path | None, changes: Sequence[str]) -> dict[str, Any]:
    """The values of a TOML file, overridden by *changes*. Raises BadInput."""
    values = {} if path is None else _renamed(read_toml(path))
    for text in changes:
        values = merged(values, _renamed(override(text)))
    return values


def override(text: str) -> dict[str, Any]:
    """Parses `targets.alpha=0.1` to nested values. Raises BadInput where it is no `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"{SET} {text!r} is not KEY=VALUE: write for example targets.alpha=0.1")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    return parsed
