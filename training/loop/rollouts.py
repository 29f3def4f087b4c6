"""Plays rollouts and evaluations: runs of the agent with a checkpoint as its policy. Interrupted runs are resumed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agent.config import RunConfig
from agent.progress import Listener
from agent.run.run_store import RunFolder
from agent.run.runner import resume, run_suite
from envs.core.errors import BadInput
from envs.core.run_lock import RunLock, RunLocked
from envs.core.tasks import TaskRef, TaskSelection
from judges.registry import JUDGES
from models.local.declarations import declared_thoughts
from planners.registry import PLANNERS
from training.engine.checkpoints import base_of, check_checkpoint, policy_spec, read_config, weights_digest
from training.engine.tree_attention import check_layers
from training.loop.parts import RunLocation, load_or_compute, run_location
from training.loop.settings import EvaluationSettings, RaySettings, RolloutSettings
from training.rollouts.pool import find_runs
from training.serving.rollout_server import ServerSettings, serving

RUN = "run"
SHARD = "shard"
"""Name prefix of a cluster's runs."""
WAIT = 1.0
"""Seconds between two attempts to lock a shared run."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; the loop resumes it when it is started again."""


def rollout_config(policy: Path, settings: RolloutSettings, seed: int) -> RunConfig:
    """Planner, rater and outcome judge are those of *settings*: the suite's own, or models. The policy thinks as its
    checkpoint declares, also where it is played on a server."""
    return RunConfig(
        policy=policy_spec(policy),
        planner=settings.planner,
        k=settings.k,
        rater=rater_of(settings.planner, settings),
        judge=settings.judge or "state",
        outcome="judge" if settings.judge else "checker",
        base_url=settings.base_url,
        show_plan=settings.show_plan,
        profile=settings.profile,
        max_actions_per_turn=settings.max_actions_per_turn,
        constrained="on" if settings.constrained else "off",
        rationale=0,  # the completion is the action alone
        thoughts=declared_thoughts(policy, base_of(policy)) or "none",
        temperature=settings.temperature,
        retry_temperature=0.0,  # training data and evaluations must come from the policy itself
        workers=settings.workers,
        attempts=settings.attempts,
        limits=settings.limits,
        seed=seed,
        fsync=False,
    )


def evaluation_config(policy: Path, settings: EvaluationSettings, rollouts: RolloutSettings, seed: int) -> RunConfig:
    """The configuration of rollouts with the evaluation's temperature and attempts. With planner `none` milestones are
    checked but not shown, so that their heat map can be drawn. A model that plans also rates, because the checkers know
    the reference milestones only."""
    shown = settings.shows_milestones
    return rollout_config(policy, rollouts, seed).model_copy(
        update={
            "planner": settings.planner if shown else "reference",
            "rater": rater_of(settings.planner, rollouts),
            "judge": "state",
            "outcome": "checker",
            "show_plan": shown,
            "temperature": settings.temperature,
            "attempts": settings.attempts,
        }
    )


def rater_of(planner: str, settings: RolloutSettings) -> str:
    """The rater of *planner*'s milestones. Checkers know the reference milestones only, so a model that plans also
    rates, unless the rollouts have the same planner and a rater of their own."""
    if planner == settings.planner and settings.rater:
        return settings.rater
    return "state" if planner in ("none", "reference") else "same"


def models_named(settings: RolloutSettings, evaluation: EvaluationSettings) -> tuple[str, ...]:
    """Specs of the models that plan, rate and judge beside the policy's own."""
    planners = [PLANNERS.split(spec)[1] for spec in (settings.planner, evaluation.planner)]
    judges = [JUDGES.split(spec)[1] for spec in (settings.rater, settings.judge) if spec]
    return tuple(dict.fromkeys(spec for spec in (*planners, *judges) if spec not in ("", "same")))


def check_policy(folder: Path) -> None:
    """Raises BadInput where *folder* is no checkpoint that can be trained, without loading its weights."""
    check_checkpoint(folder)
    check_layers(read_config(folder))


async def play_run(
    mark: Path,
    config: RunConfig,
    policy: Path,
    refs: Sequence[TaskRef],
    *,
    shared: Path | None,
    listeners: Sequence[Listener],
    log: Callable[[str], None],
    server: ServerSettings | None = None,
    ray: RaySettings | None = None,
) -> Path:
    """Plays or resumes a run of *refs* and returns the folder of the finished run. On a cluster (*ray*) the folder has
    a run for each shard. The policy runs on a *server*, or in the process of the episode.

    The file *mark* stores the run's location: beside it, or below *shared*, where runs with the same weights, settings
    and tasks are reused. Waits while another process plays the same shared run. Raises Interrupted.
    """
    home = Path(mark.stem) if shared is None else (shared / shared_key(config, policy, refs, ray, server)).resolve()
    load_or_compute(mark, RunLocation, lambda: RunLocation(run=home / RUN))
    folder = RunFolder(run_location(mark))
    async with _exclusive(folder.path.parent, log):
        if _finished(folder.path) == len(refs) * config.attempts:
            return folder.path
        async with _served(
            config if ray is None else _with_absolute_path(config, policy), server, policy, folder, log
        ) as served:
            if ray is not None:
                return await _on_cluster(folder.path, served, refs, ray, log)
            if folder.manifest.exists():
                _point_to(folder, served.policy)
                options = served.resolved() | {"suite": refs[0].suite}
                result = await resume(folder.path, listeners, granted_settings=options)
            else:
                selection = TaskSelection(refs[0].suite, picked=tuple(refs))
                result = await run_suite(served, selection, folder.path.parent, listeners, run_id=folder.path.name)
    if not result.complete:
        raise Interrupted(f"interrupted after {len(result.episodes)} of {result.planned} episodes")
    return folder.path


def is_finished(mark: Path, episodes: int) -> bool:
    """Whether the run that the file *mark* names has finished so many *episodes*; False without the file."""
    return mark.exists() and _finished(run_location(mark)) == episodes


def _finished(place: Path) -> int:
    """Number of finished episodes of the run at *place*, or of a cluster's runs below it."""
    begun = [run for run in find_runs(place) if run.manifest.exists()]
    return sum(len(run.finished(run.read_manifest().jobs())) for run in begun)


def _point_to(run: RunFolder, policy: str) -> None:
    """Sets the policy of the unfinished *run* to *policy*: the same weights, possibly at another address."""
    manifest, own = run.read_marked()
    if own and manifest.config.policy != policy:  # resuming replaces all settings of another machine's run
        config = manifest.config.model_copy(update={"policy": policy})
        run.write_manifest(manifest.model_copy(update={"config": config}))


def _with_absolute_path(config: RunConfig, policy: Path) -> RunConfig:
    """Makes the policy's path absolute, because workers have another working directory."""
    return config.model_copy(update={"policy": policy_spec(policy.absolute())})


@asynccontextmanager
async def _served(
    config: RunConfig, server: ServerSettings | None, policy: Path, run: RunFolder, log: Callable[[str], None]
) -> AsyncGenerator[RunConfig]:
    """*config* with the policy on the *server*, if there is one, while the body runs."""
    if server is None:
        yield config
        return
    async with serving(server, policy, run.path.parent, log) as spec:
        yield config.model_copy(update={"policy": spec})


async def _on_cluster(
    place: Path, config: RunConfig, refs: Sequence[TaskRef], ray: RaySettings, log: Callable[[str], None]
) -> Path:
    from training.rollouts.ray_pool import RayPool

    selection = TaskSelection(refs[0].suite, picked=tuple(refs))
    async with RayPool(
        ray.workers,
        address=ray.address or None,
        shard_size=ray.shard_size,
        shard_deadline_s=ray.shard_deadline_s,
    ) as pool:
        played = await pool.play(config, selection, place, run_id=SHARD)
    if played.workers_lost:
        log(f"{played.workers_lost} workers died and were replaced")
    if not played.complete:
        raise BadInput(
            f"workers died before {played.planned - len(played.episodes)} of {played.planned} episodes had begun: see"
            " Ray's log; the same command continues the run"
        )
    return place


@asynccontextmanager
async def _exclusive(home: Path, log: Callable[[str], None]) -> AsyncGenerator[None]:
    """Locks *home*, and waits while another process has the lock."""
    lock = _lock_for(home)
    waiting = False
    while True:
        try:
            lock.acquire()
            break
        except RunLocked as error:
            if not waiting:
                log(f"another process plays the same run, waiting for it: {error}")
            waiting = True
            await asyncio.sleep(WAIT)
    try:
        yield
    finally:
        lock.release()


def _lock_for(home: Path) -> RunLock:
    home.mkdir(parents=True, exist_ok=True)
    return RunLock(home)


def shared_key(
    config: RunConfig,
    policy: Path,
    refs: Sequence[TaskRef],
    ray: RaySettings | None = None,
    server: ServerSettings | None = None,
) -> str:
    """Key of a shared run: equal for runs with the same expected result."""
    content = config.resolved() | {"policy": weights_digest(policy), "tasks": [ref.id for ref in refs]}
    content.pop("workers")
    if ray is not None:  # the folder holds shards
        content["shard_size"] = ray.shard_size
    if server is not None:  # its precision may differ
        content["server"] = server.options
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
