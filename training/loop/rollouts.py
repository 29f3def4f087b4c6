"""Rollouts and evaluations: runs of the agent with a checkpoint as its policy, resumed where they were broken off."""

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
from training.engine.checkpoints import check_weights, is_adapter, policy_spec, read_config, weights_digest
from training.engine.tree_attention import check_layers
from training.loop.parts import Place, once, place_of
from training.loop.settings import EvaluationSettings, RaySettings, RolloutSettings
from training.rollouts.pool import runs_below
from training.serving.rollout_server import ServerSettings, serving

RUN = "run"
SHARD = "shard"
"""Begins the names of a cluster's runs."""
WAIT = 1.0
"""Seconds between two looks at whether a shared run is free."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; the loop continues it when it is started again."""


def rollout_config(policy: Path, settings: RolloutSettings, seed: int) -> RunConfig:
    return RunConfig(
        policy=policy_spec(policy),
        planner="reference",
        judge="state",
        show_plan=settings.show_plan,
        prompt_style=settings.prompt_style,
        temperature=settings.temperature,
        retry_temperature=0.0,  # what is learned from, and measured, is the policy itself
        workers=settings.workers,
        attempts=settings.attempts,
        limits=settings.limits,
        seed=seed,
        fsync=False,
    )


def evaluation_config(policy: Path, settings: EvaluationSettings, rollouts: RolloutSettings, seed: int) -> RunConfig:
    """As rollouts are played, but greedy where the settings do not say otherwise. With planner `none` the milestones
    are checked and not shown, so that the map of milestones can be drawn. A model that plans also rates: the checkers
    know the reference's milestones only, and nothing else would tell which of its own are reached."""
    shown = settings.planner != "none"
    return rollout_config(policy, rollouts, seed).model_copy(
        update={
            "planner": settings.planner if shown else "reference",
            "judge": "state" if settings.planner in ("none", "reference") else "same",
            "show_plan": shown,
            "temperature": settings.temperature,
            "attempts": settings.attempts,
        }
    )


def check_policy(folder: Path) -> None:
    """Raises BadInput where *folder* is plainly no checkpoint that can be trained; its weights are not loaded."""
    if not (is_adapter(folder) or (folder / "config.json").is_file()):
        raise BadInput(f"{str(folder)!r} is no checkpoint: it holds no config.json")
    check_weights(folder)
    check_layers(read_config(folder))


async def played(
    mark: Path,
    config: RunConfig,
    policy: Path,
    refs: Sequence[TaskRef],
    *,
    shared: Path | None,
    listeners: Sequence[Listener],
    tell: Callable[[str], None],
    server: ServerSettings | None = None,
    ray: RaySettings | None = None,
) -> Path:
    """The folder of a finished run of *refs*; it is played, or played to its end, where it is not. On a cluster (*ray*)
    it holds a run for each shard. The policy answers from a *server*, or from where the episode is played.

    *mark* is a file that then says where the run lies: beside it, or below *shared*, where runs of the same weights,
    settings and tasks are found again. While another process plays the same shared run this one waits for it. Raises
    Interrupted.
    """
    home = Path(mark.stem) if shared is None else (shared / shared_key(config, policy, refs, ray, server)).resolve()
    once(mark, Place, lambda: Place(run=home / RUN))
    folder = RunFolder(place_of(mark))
    async with _alone(folder.path.parent, tell):
        if _finished(folder.path) == len(refs) * config.attempts:
            return folder.path
        async with _asked(
            config if ray is None else _found_anywhere(config, policy), server, policy, folder, tell
        ) as asked:
            if ray is not None:
                return await _on_cluster(folder.path, asked, refs, ray, tell)
            if folder.manifest.exists():
                _ask_there(folder, asked.policy)
                given = asked.resolved() | {"suite": refs[0].suite}
                result = await resume(folder.path, listeners, given_again=given)
            else:
                selection = TaskSelection(refs[0].suite, picked=tuple(refs))
                result = await run_suite(asked, selection, folder.path.parent, listeners, run_id=folder.path.name)
    if not result.complete:
        raise Interrupted(f"interrupted after {len(result.episodes)} of {result.planned} episodes")
    return folder.path


def _finished(place: Path) -> int:
    """Episodes of the run at *place*, or of a cluster's runs below it, that were played to their end."""
    begun = [run for run in runs_below(place) if run.manifest.exists()]
    return sum(len(run.finished(run.read_manifest().jobs())) for run in begun)


def _ask_there(run: RunFolder, policy: str) -> None:
    """What is left of *run* is asked of *policy*: the same weights, which may have another address now."""
    manifest, own = run.read_marked()
    if own and manifest.config.policy != policy:  # one of another machine is taken over as a whole when it is resumed
        config = manifest.config.model_copy(update={"policy": policy})
        run.write_manifest(manifest.model_copy(update={"config": config}))


def _found_anywhere(config: RunConfig, policy: Path) -> RunConfig:
    """Workers have a working directory of their own."""
    return config.model_copy(update={"policy": policy_spec(policy.absolute())})


@asynccontextmanager
async def _asked(
    config: RunConfig, server: ServerSettings | None, policy: Path, run: RunFolder, tell: Callable[[str], None]
) -> AsyncGenerator[RunConfig]:
    """*config*, with the policy on the *server*, if there is one, while the body runs."""
    if server is None:
        yield config
        return
    async with serving(server, policy, run.path.parent, tell) as spec:
        yield config.model_copy(update={"policy": spec})


async def _on_cluster(
    place: Path, config: RunConfig, refs: Sequence[TaskRef], ray: RaySettings, tell: Callable[[str], None]
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
        tell(f"{played.workers_lost} workers died and were replaced")
    if not played.complete:
        raise BadInput(
            f"workers died before {played.planned - len(played.episodes)} of {played.planned} episodes had begun: see"
            " Ray's log; the same command goes on"
        )
    return place


@asynccontextmanager
async def _alone(home: Path, tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """Holds *home*, waiting as long as another process does."""
    lease = _lease(home)
    waiting = False
    while True:
        try:
            lease.acquire()
            break
        except RunLocked as error:
            if not waiting:
                tell(f"another process plays the same, waiting for it: {error}")
            waiting = True
            await asyncio.sleep(WAIT)
    try:
        yield
    finally:
        lease.release()


def _lease(home: Path) -> RunLock:
    home.mkdir(parents=True, exist_ok=True)
    return RunLock(home)


def shared_key(
    config: RunConfig,
    policy: Path,
    refs: Sequence[TaskRef],
    ray: RaySettings | None = None,
    server: ServerSettings | None = None,
) -> str:
    """Equal for runs that must come out alike."""
    told = config.resolved() | {"policy": weights_digest(policy), "tasks": [ref.id for ref in refs]}
    told.pop("workers")
    if ray is not None:  # its folder holds shards
        told["shard_size"] = ray.shard_size
    if server is not None:  # its precision is another
        told["server"] = server.options
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
