"""`mira train plan`: checks the learning rates and the GPU memory of a configuration without loading weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent.cli.options import Wide
from agent.cli.output import EXIT_OK, print_json, print_table, stderr, stdout
from agent.cli.tables import Column, FittedTable
from agent.cli.wait_notices import Notices
from envs.core.errors import BadInput
from training.cli.messages import AsJson, Changes, changes_option, importing, needs_extra
from training.cli.recipes import RecipeName, with_recipe

if TYPE_CHECKING:
    from training.loop.resource_plan import TrainingPlan

Configuration = Annotated[
    str | None,
    typer.Argument(help="TOML file of `mira train mira`, `grpo` or `sft`, or a built-in one.", metavar="CONFIG"),
]
Model = Annotated[
    str | None,
    typer.Option(help="Folder of a checkpoint, or a known architecture such as gemma3-12b; default: the start."),
]
Start = Annotated[
    str | None,
    typer.Option(help="Plan `mira train sft` from this checkpoint or architecture; CONFIG may be left out then."),
]
Rows = Annotated[
    int | None,
    typer.Option(min=1, help="For `mira train sft`: number of training rows, to check the learning rate."),
]
Gpus = Annotated[int | None, typer.Option(min=1, help="Number of GPUs; default: the launcher's processes.")]
GpuMemory = Annotated[float, typer.Option(min=0.1, max=100_000, help="Memory of one GPU in GB (10⁹ bytes).")]
ImageSize = Annotated[
    str | None, typer.Option("--image", help="For GRPO: size of the screenshots, e.g. 1280x800; default: no images.")
]
PromptTokens = Annotated[
    int | None, typer.Option(min=1, help="For GRPO: tokens of the longest prompt, with its image.")
]


def plan(
    config: Configuration = None,
    recipe: RecipeName = None,
    start: Start = None,
    rows: Rows = None,
    model: Model = None,
    image: ImageSize = None,
    prompt_tokens: PromptTokens = None,
    gpus: Gpus = None,
    gpu_memory: GpuMemory = 80.0,
    change: Annotated[Changes, changes_option("targets.alpha=0.1 (MiRA) or group=4 (GRPO)")] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Show whether a configuration of `mira train mira`, `grpo` or `sft` can learn and fits its GPUs; exit code 2 if
    not."""
    needs_extra()
    from training.configs import config_file

    if config is None and recipe is None and start is None:
        raise BadInput(
            "nothing to plan: name a CONFIG, a --recipe of `mira train grpo`, or a --start of `mira train sft`"
        )
    path = None if config is None else config_file(config)
    with Notices(None if as_json else stderr):
        importing("torch", "transformers")
        from training.engine.memory_plan import GB

        changes = with_recipe(recipe, change)
        gpu_bytes = round(gpu_memory * GB)
        command = _command(path, recipe, start)
        if command != "grpo" and (image is not None or prompt_tokens is not None):
            raise BadInput("--image and --prompt-tokens are for configurations of `mira train grpo`")
        if command != "sft" and rows is not None:
            raise BadInput("--rows is for `mira train sft`: name its --start, too")
        if command == "grpo":
            result = _plan_grpo(
                path, changes, model, _size(image), prompt=prompt_tokens, gpus=gpus, gpu_bytes=gpu_bytes
            )
        elif command == "sft":
            result = _plan_fine_tuning(path, changes, model, start, rows=rows, gpus=gpus, gpu_bytes=gpu_bytes)
        else:
            result = _plan_loop(path, changes, model, gpus=gpus, gpu_bytes=gpu_bytes)
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _print(result)
        if command == "sft" and rows is None:
            stdout.print("learning rate: not checked, it depends on the number of rows: --rows N", highlight=False)
    result.check()
    return EXIT_OK


def _command(path: Path | None, recipe: str | None, start: str | None) -> Literal["mira", "grpo", "sft"]:
    """The command whose configuration is planned: that of the options, else that of most keys of the TOML file."""
    from training.grpo.settings import GrpoSettings
    from training.loop.settings import LoopSettings, values_of
    from training.loop.sft import SupervisedSettings

    if start is not None and recipe is not None:
        raise BadInput("--start plans `mira train sft` on runs, and --recipe `mira train grpo`: leave out one of them")
    if start is not None:
        return "sft"
    if recipe is not None or path is None:
        return "grpo"
    keys = set(values_of(path, ()))
    loop, grpo, sft = (
        len(keys & set(fields.model_fields)) for fields in (LoopSettings, GrpoSettings, SupervisedSettings)
    )
    if sft == grpo > loop:
        raise BadInput(
            f"{str(path)!r} can be of `mira train sft` or `mira train grpo`: give --start CHECKPOINT for the first, or"
            " --recipe RECIPE for the second"
        )
    if sft > max(loop, grpo):
        return "sft"
    return "grpo" if grpo > loop else "mira"


def _plan_loop(path: Path | None, changes: Sequence[str], model: str | None, **gpus: Any) -> TrainingPlan:
    from training.loop.resource_plan import model_config, plan_training
    from training.loop.settings import load_settings

    settings = load_settings(path, changes)
    described, name = model_config(model, settings.start, "" if path is None else path.stem)
    return plan_training(settings, described, name, **gpus)


def _plan_fine_tuning(
    path: Path | None, changes: Sequence[str], model: str | None, start: str | None, **limits: Any
) -> TrainingPlan:
    from training.loop.resource_plan import architectures, model_config, plan_fine_tuning
    from training.loop.sft import SupervisedSettings

    settings = SupervisedSettings.load(path, changes)
    start = start or "embedded"
    shipped = start in architectures() and not Path(start).is_dir()
    described, name = model_config(model or (start if shipped else None), start, "")
    return plan_fine_tuning(settings, described, name, **limits)


def _plan_grpo(
    path: Path | None, changes: Sequence[str], model: str | None, image: tuple[int, int] | None, **limits: Any
) -> TrainingPlan:
    importing("torch", "TRL")
    from training.grpo.resource_plan import plan_grpo
    from training.grpo.settings import load_settings
    from training.loop.resource_plan import model_config

    settings = load_settings(path, changes)
    described, name = model_config(model, "embedded", "")
    return plan_grpo(settings, described, name, image=image, **limits)


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if found is None:
        raise BadInput(f"--image {text!r}: give width and height in pixels, e.g. 1280x800")
    return int(found[1]), int(found[2])


def _print(result: TrainingPlan) -> None:
    from training.engine.learning_rate_check import ENOUGH_CHANGE, LEAST_CHANGE
    from training.engine.memory_plan import GAPS, GB, RESERVE

    split = "weights sharded" if result.sharded else "each with the whole model"
    split += f", ZeRO {result.zero}" if result.zero else ""
    roles = [(name, drop) for name, drop in _ROLES if drop is None or any(getattr(one, name) for one in result.peaks)]
    table = FittedTable(
        Column("stage", wrap=8),
        *(Column(name, right=True, drop=drop or 0) for name, drop in roles),
        Column("total", right=True),
        Column("reserved", right=True),
        Column("left", right=True),
        title=f"GB a process at the peak: {result.model}, {result.processes} processes, {split}",
    )
    for peak in result.peaks:
        numbers = (getattr(peak, name) for name, _ in roles)
        sums = (peak.total, peak.reserved, result.usable - peak.reserved)
        cells = (f"{number / GB:.1f}" for number in (*numbers, *sums))
        table.row(peak.stage, *cells)
    print_table(table)
    lines = [
        f"reserved: by PyTorch's allocator, {GAPS:.0%} more than the total for its gaps",
        f"left: of {result.usable / GB:.1f} GB, {RESERVE:.0%} of {result.gpu_bytes / GB:.0f} GB are kept free; "
        "--gpu-memory plans for another GPU",
        f"main memory: a process loads at most {result.loaded / GB:.1f} GB of weights, {result.processes} processes "
        f"{result.processes * result.loaded / GB:.1f} GB, and libraries take about 1 GB in each",
    ]
    lines += [
        f"{rate.stage}: rate {rate.rate:g} changes a layer's output by at most {rate.change:.2g}, "
        f"{rate.times_least:.3g} times the least" + _LOW * (LEAST_CHANGE <= rate.change < ENOUGH_CHANGE)
        for rate in result.rates
    ]
    for line in lines:
        stdout.print(line, highlight=False, markup=False, soft_wrap=True)


_LOW = ": a low rate, the model may learn only a part of what it is asked"

_ROLES = (
    ("weights", None),
    ("reference", 6),
    ("gradients", 3),
    ("optimizer", 2),
    ("gathered", 5),
    ("cache", 7),
    ("sampler", 8),
    ("activations", None),
    ("logits", 4),
)
"""Roles, and the order in which a narrow terminal drops their columns. Those that are 0 in all stages are left out."""
