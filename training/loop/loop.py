"""Runs all phases of one arm, and resumes an interrupted run."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.progress import Listener
from agent.run.discover_traces import discover_traces
from envs.core.errors import BadInput
from envs.core.plain_values import checked
from envs.core.record import Record
from envs.core.run_lock import LOCK_NAME, RunLock
from envs.core.tasks import TaskRef
from envs.core.trace_store import check_chain, check_unedited, read_summary
from models.base import ChatModel
from models.specs import make_model
from training.data.cache import read_trajectories
from training.data.trajectories import Trajectory
from training.engine.checkpoints import weights_digest
from training.engine.progress import Watcher, unwatched
from training.loop.critics import PRETRAINING, fold_name
from training.loop.curriculum import (
    Candidate,
    build_pool,
    next_phase,
    played_tasks,
    training_seeds,
    with_instructions,
)
from training.loop.curriculum.task_list import Selection
from training.loop.data import read_runs
from training.loop.durations import EVALUATION, read_seconds, timed
from training.loop.evaluation_tasks import evaluation_refs
from training.loop.metrics import PhaseMetrics, PlayedRun, played_in
from training.loop.parts import changed_keys, load_or_compute, read_record, run_location, write_json, write_record
from training.loop.phase import METRICS, evaluate, evaluated, finished, run_phase
from training.loop.phase_context import LogFunction, PhaseContext, phase_seed
from training.loop.pretraining import pretraining_episodes
from training.loop.rollouts import is_finished, models_named, play_run, rollout_config
from training.loop.rounds import played_rounds, round_file
from training.loop.settings import LoopSettings
from training.loop.settings_checks import check_episodes, check_settings
from training.loop.task_values import start_values
from training.loop.tracking import phase_tracker
from training.starts import start_folder

CONFIG = "config.json"
START = "start.json"
_OF_A_ROUND = 1_000_000
"""Distance of the seeds of a phase's rounds."""
_LEFT_BY_A_START = {LOCK_NAME, START}
"""Files of a run that was killed before its settings were written, beside `*.part`."""


class Start(Record):
    """The start of all phases: `start.json`."""

    weights: str
    """:func:`training.engine.checkpoints.weights_digest`."""


class Progress(Record):
    """The metrics of all phases, phase 0 is the start: `progress.json`, which exists after the start's evaluation."""

    arm: str
    seed: int
    phases: tuple[PhaseMetrics, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """The folder of one training run."""

    out: Path
    settings: LoopSettings
    listeners: tuple[Listener, ...] = ()
    log: LogFunction = print
    watch: Watcher = unwatched

    @classmethod
    def open(
        cls,
        out: Path,
        settings: LoopSettings,
        listeners: Sequence[Listener] = (),
        log: LogFunction = print,
        watch: Watcher = unwatched,
    ) -> Loop:
        """Opens a new run or one to resume, without writing. Raises BadInput where *out* holds a run with other
        settings, and for wrong *settings* that can be detected before anything is played. *log* gets warnings of
        settings that are probably not meant."""
        _check_folder(out, settings)
        check_settings(settings, log)
        return cls(out, settings, tuple(listeners), log, watch)

    async def run(self) -> Progress:
        """Runs every phase that is not done yet. Raises TrainingDiverged, Interrupted, and BadInput, also for
        demonstrations of held-out instances, before anything is played."""
        for name in ("demonstrations", "pretraining"):
            await check_episodes(name, getattr(self.settings, name), self.log)
        curriculum = self.settings.curriculum
        async with _model_of(curriculum.judge), _model_of(curriculum.writing.model):
            pass  # a missing key is found before anything is played
        play = self.settings.rollouts
        for spec in models_named(play, self.settings.evaluation):
            async with aclosing(make_model(spec, base_url=play.base_url)):
                pass
        with self.owned(), phase_tracker(self.out, self.settings.report_to) as track:
            refs = evaluation_refs(self.settings.evaluation)
            phases = [await self._start(refs)]
            track(phases[0])
            if not (self.out / "progress.json").exists():
                self._progress(phases)
            pool = await self._pool() if self.settings.phases else ()
            for number in range(1, self.settings.phases + 1):
                phases.append(await self._phase(number, pool, refs))
                self.remove_unneeded(number)
                track(phases[-1])
                self._progress(phases)
            return self._progress(phases)

    @contextmanager
    def owned(self) -> Generator[None]:
        """Locks the folder and writes `config.json`. Raises RunLocked, and BadInput where another run has begun in it
        since `open`."""
        self.out.mkdir(parents=True, exist_ok=True)
        with RunLock(self.out):
            _check_folder(self.out, self.settings)
            start = Start(weights=weights_digest(self.policy(0)))
            if load_or_compute(self.out / START, Start, lambda: start) != start:
                raise BadInput(
                    f"{str(self.out)!r} was started from other weights than {str(self.policy(0))!r} has now: choose"
                    " another folder, or restore the weights"
                )
            write_json(self.out / CONFIG, _plain(self.settings))
            yield

    def folder(self, number: int) -> Path:
        return self.out / f"phase-{number}"

    def policy(self, number: int) -> Path:
        """The checkpoint at the end of phase *number*; for phase 0 the start."""
        if number:
            return self.folder(number) / "actor" / "model"
        return start_folder(self.settings.start)

    def _progress(self, phases: Sequence[PhaseMetrics]) -> Progress:
        progress = Progress(arm=self.settings.arm, seed=self.settings.seed, phases=tuple(phases))
        write_record(self.out / "progress.json", progress)
        return progress

    async def _start(self, refs: Sequence[TaskRef]) -> PhaseMetrics:
        played = await self._evaluated(0, refs)
        return PhaseMetrics(phase=0, evaluation=played, seconds=read_seconds(self.folder(0)))

    async def _pool(self) -> tuple[Candidate, ...]:
        pool = self.settings.pool
        seeds = training_seeds(pool.suite)
        return await build_pool(pool.suite, names=pool.names or None, seeds=seeds, size=pool.size)

    async def _phase(self, number: int, pool: Sequence[Candidate], refs: Sequence[TaskRef]) -> PhaseMetrics:
        metrics = finished(self.folder(number)) or await self._new_phase(number, pool)
        due = number % self.settings.evaluation.every == 0 or number == self.settings.phases
        if not due and not evaluated(self.folder(number)):  # before more phases were added, it was the last one
            return metrics
        played = await self._evaluated(number, refs)
        seconds = metrics.seconds | read_seconds(self.folder(number))
        return metrics.model_copy(update={"evaluation": played, "seconds": seconds})

    async def _new_phase(self, number: int, pool: Sequence[Candidate]) -> PhaseMetrics:
        tasks = await self._tasks(number, pool)
        demonstrations = self._demonstrations()
        context = PhaseContext(
            settings=self.settings,
            number=number,
            folder=self.folder(number),
            policy=self.policy(number - 1),
            start=self.policy(0),
            critics=self._critics(number - 1),
            past=(*demonstrations, *self._past(number)),
            demonstrations=demonstrations if number == 1 else (),
            pretraining=self._pretraining() if number == 1 else (),
            listeners=self.listeners,
            log=self.log,
            watch=self.watch,
        )

        async def draw(again: int, size: int) -> tuple[TaskRef, ...]:
            return await self._tasks(number, pool, again, size)

        return await run_phase(context, tasks, draw)

    async def _evaluated(self, number: int, refs: Sequence[TaskRef]) -> PlayedRun:
        self.log(f"phase {number}: evaluating on {len(refs)} held-out tasks")
        folder = self.folder(number)
        with nullcontext() if evaluated(folder) else timed(folder, EVALUATION):
            run = await evaluate(
                folder, self.policy(number), refs, self.settings, listeners=self.listeners, log=self.log
            )
        played = played_in(run)
        self.log(f"phase {number}: {played.successes} of {played.episodes} solved")
        return played

    async def _tasks(
        self, number: int, pool: Sequence[Candidate], part: int = 1, size: int | None = None
    ) -> tuple[TaskRef, ...]:
        """Selects the tasks of a phase's round *part*, or reads them from `tasks.json`. *size*: None for the phase's;
        a further round has none if the pool is used up."""
        path = self.folder(number) / round_file("tasks", part)
        if path.exists():
            return read_record(path, Selection).refs
        runs = [run for phase in range(1, number) for run in played_rounds(self.folder(phase))]
        runs += played_rounds(self.folder(number)) if part > 1 else ()
        if self.settings.curriculum.start_tasks:
            runs.insert(0, await self.start_run(pool))
        files = [file.path for run in runs for file in discover_traces([run])]
        for file in files:
            check_unedited(file, check_chain(file))
        played = played_tasks(read_summary(file) for file in files)
        curriculum = self.settings.curriculum
        async with _model_of(curriculum.judge) as judge, _model_of(curriculum.writing.model) as writer:
            selection = await next_phase(
                played.failed,
                played.seen,
                with_instructions(pool, played.instructions),
                self.settings.curriculum,
                size=self.settings.rollouts.tasks if size is None else size,
                seed=phase_seed(self.settings, number) + _OF_A_ROUND * (part - 1),
                succeeded=played.succeeded,
                checkpoint=self.policy(number - 1),
                model=judge,
                writer=writer,
                log=self.log,
                value=start_values(self._critics(number - 1).get("value"), self.policy(number - 1), self.settings),
            )
        if not selection.tasks and part > 1:
            return ()
        counts = selection.counts
        why = counts.why_missing(len(pool), curriculum.value_band)
        if not selection.tasks:
            raise BadInput(
                f"phase {number} has no task left to play: {why}; set fewer phases, or start in another folder with a"
                f" {'larger pool.size' if curriculum.value_band is None else 'larger pool.size or a wider band'}"
            )
        if counts.missing and part == 1:
            self.log(f"phase {number}: {counts.missing} of {self.settings.rollouts.tasks} tasks are missing: {why}")
        return load_or_compute(path, Selection, lambda: selection).refs

    async def start_run(self, pool: Sequence[Candidate]) -> Path:
        """The run of the start on some of the pool's tasks, whose failures are the first F."""
        settings = self.settings
        refs = [task.ref for task in pool]
        drawn = random.Random(f"start {settings.seed}").sample(refs, min(len(refs), settings.curriculum.start_tasks))
        once = settings.rollouts.model_copy(update={"attempts": 1})
        mark = self.folder(1) / "start.json"
        if is_finished(mark, len(drawn)):
            return run_location(mark)
        self.log(f"phase 1: playing {len(drawn)} tasks with the start, to choose by its failures")
        return await play_run(
            mark,
            rollout_config(self.policy(0), once, phase_seed(settings, 0)),
            self.policy(0),
            drawn,
            shared=settings.shared,
            listeners=self.listeners,
            log=self.log,
            server=settings.rollouts.server,
            ray=settings.rollouts.ray,
        )

    def _critics(self, number: int) -> dict[str, Path]:
        names = ("potential", "value", PRETRAINING, *(fold_name(part) for part in range(self.settings.value.folds)))
        models = {name: self.folder(number) / name / "model" for name in names}
        return {name: model for name, model in models.items() if model.exists()}

    def remove_unneeded(self, number: int) -> None:
        """Removes, after phase *number*, checkpoints of the phase before that neither resuming nor the next phase
        reads: its critics, and by `retain` its actor."""
        models = list(self._critics(number - 1).values())
        if self.settings.retain == "last" and number > 1:
            models.append(self.policy(number - 1))
        for model in models if self.settings.retain != "all" else ():
            shutil.rmtree(model, ignore_errors=True)

    def _past(self, number: int) -> tuple[Trajectory, ...]:
        tables = (self.folder(before) / "data" / "new.parquet" for before in range(1, number))
        return tuple(trajectory for table in tables for trajectory in read_trajectories(table))

    def _demonstrations(self) -> tuple[Trajectory, ...]:
        places = [Path(place) for place in self.settings.demonstrations]
        read = read_runs(places, texts=True).kept if places else ()  # the demonstrator may have another tokenizer
        return tuple(trajectory for trajectory in read if trajectory.success)

    def _pretraining(self) -> tuple[Trajectory, ...]:
        places = self.settings.pretraining
        episodes = pretraining_episodes(places, self.settings.rollouts) if places else ()
        if places and not episodes:
            raise BadInput("pretraining: these runs hold no success with milestones and prompts")
        return episodes


@asynccontextmanager
async def _model_of(spec: str) -> AsyncGenerator[ChatModel | None]:
    """A chat model of the curriculum; None if it needs none."""
    if not spec:
        yield None
        return
    async with aclosing(make_model(spec)) as model:
        yield model


def _plain(settings: LoopSettings) -> dict[str, Any]:
    return json.loads(settings.model_dump_json())


def _check_folder(out: Path, settings: LoopSettings) -> None:
    """Raises BadInput where *out* holds a run of other settings than *settings*, or anything else."""
    if (out / CONFIG).exists():
        known, new = _known(out / CONFIG), _plain(settings)
        different = changed_keys(known, new)
        if set(different) - {"phases"}:
            raise BadInput(
                f"{str(out)!r} holds a run with other settings of {', '.join(different)}: restore them, or choose"
                " another folder"
            )
        if (done := _finished_phases(out)) > settings.phases:
            raise BadInput(
                f"{str(out)!r} has {done} finished phases, more than phases={settings.phases}: set phases to {done} or"
                " more, or choose another folder"
            )
    elif out.exists() and not out.is_dir():
        raise BadInput(f"{str(out)!r} is a file: name a folder")
    elif out.exists() and any(path.name not in _LEFT_BY_A_START and path.suffix != ".part" for path in out.iterdir()):
        raise BadInput(f"{str(out)!r} is not empty and holds no training run: choose an empty folder")


def _finished_phases(out: Path) -> int:
    """Number of the phases of the run in *out* that are done."""
    return next(number for number in itertools.count() if not (out / f"phase-{number + 1}" / METRICS).exists())


def _known(config: Path) -> dict[str, Any]:
    """The settings of an existing run; keys that it does not have yet get their defaults."""
    try:
        values: Any = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(config)!r} cannot be read: {error}") from error
    return _plain(checked(LoopSettings, values, str(config)))
