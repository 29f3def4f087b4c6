"""`mira train mgrpo`: group-relative policy optimization on live episodes."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from agent.cli.options import Wide, chosen_names
from training.cli.loop_run import run_loop
from training.cli.messages import AsJson, Changes, NamedConfig, Out, changes_option, log, needs_extra


def mgrpo(
    out: Out,
    config: NamedConfig = None,
    start: Annotated[
        str | None,
        typer.Option(help="Checkpoint to start from: a folder, a GGUF file, or embedded; default: embedded."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="Suite of the training and evaluation tasks: miniwob, sites or an added one; default: miniwob."
        ),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Comma-separated names of the tasks; default: all of the suite.")
    ] = None,
    group: Annotated[
        int | None, typer.Option(help="Number of attempts at each task instance; default: 8.", min=2)
    ] = None,
    change: Annotated[Changes, changes_option("rollouts.tasks=100")] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Train on live episodes with group-relative policy optimization (M-GRPO): play groups of attempts, update,
    evaluate, per phase."""
    needs_extra()
    from training.configs import config_file
    from training.loop.settings import load_settings

    names = chosen_names(tasks, "--tasks")
    own: dict[str, Any] = {"arm": "mgrpo", "start": start, "rollouts.attempts": group, "pool.names": names}
    own |= {"evaluation.names": names, "pool.suite": suite, "evaluation.suite": suite}
    if suite is not None and config is None:
        own |= _evaluation_of(suite, every=tasks is None)
    options = [f"{key}={json.dumps(value)}" for key, value in own.items() if value is not None]
    settings = load_settings(None if config is None else config_file(config), [*options, *(change or ())], log)
    return run_loop(settings, out, as_json=as_json)


def _evaluation_of(suite: str, *, every: bool) -> dict[str, Any]:
    """Seeds of *suite* that are not trained on, at most ten; *every*: all tasks, of a split where there are splits.
    Raises BadInput for a suite without training tasks."""
    from training.loop.curriculum import training_seeds
    from training.loop.curriculum.trainable import infos_of

    values: dict[str, Any] = {"evaluation.seeds": list(range(min(10, training_seeds(suite).start)))}
    validated = any(info.split == "validation" for info in infos_of(suite).values())
    return values | ({"evaluation.split": "validation"} if every and validated else {})
