"""`mira train plan`: checks the learning rates and the GPU memory of a configuration without loading weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import EXIT_OK, print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from training.cli.messages import AsJson, Changes, importing, needs_extra

if TYPE_CHECKING:
    from training.loop.planning import TrainingPlan

Configuration = Annotated[str, typer.Argument(help="TOML file, or the name of a built-in one.", metavar="CONFIG")]
Model = Annotated[
    str | None,
    typer.Option(help="Folder of a checkpoint, or a known architecture such as gemma3-12b; default: the start."),
]
Gpus = Annotated[int | None, typer.Option(min=1, help="Number of GPUs; default: the launcher's processes.")]
GpuMemory = Annotated[float, typer.Option(min=0.1, help="Memory of one GPU in GB (10⁹ bytes).")]


def plan(
    config: Configuration,
    model: Model = None,
    gpus: Gpus = None,
    gpu_memory: GpuMemory = 80.0,
    change: Changes = None,
    as_json: AsJson = False,
) -> int:
    """Show whether a configuration of `mira train mira` can learn and fits its GPUs; exit code 2 if not."""
    needs_extra()
    from training.configs import config_file

    path = config_file(config)
    importing("torch", "transformers")
    from training.engine.memory_plan import GB
    from training.loop.planning import model_config, plan_training
    from training.loop.settings import load_settings

    settings = load_settings(path, change or ())
    described, name = model_config(model, settings, Path(path).stem)
    result = plan_training(settings, described, name, gpus=gpus, gpu_bytes=round(gpu_memory * GB))
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _print(result)
    result.check()
    return EXIT_OK


def _print(result: TrainingPlan) -> None:
    from training.engine.memory_plan import GB, RESERVE

    split = "weights sharded" if result.sharded else "each with the whole model"
    table = FittedTable(
        Column("stage", wrap=8),
        *(Column(name, right=True, drop=drop) for name, drop in _ROLES),
        Column("total", right=True),
        Column("left", right=True),
        title=f"GB a process at the peak: {result.model}, {result.processes} processes, {split}",
    )
    for peak in result.peaks:
        numbers = (getattr(peak, name) for name, _ in _ROLES)
        cells = (f"{number / GB:.1f}" for number in (*numbers, peak.total, result.usable - peak.total))
        table.row(peak.stage, *cells)
    print_table(table)
    lines = [f"left: of {result.usable / GB:.1f} GB, {RESERVE:.0%} of {result.gpu_bytes / GB:.0f} GB are kept free"]
    lines += [
        f"{rate.stage}: rate {rate.rate:g} changes a layer's output by at most {rate.change:.2g}, "
        f"{rate.times_least:.3g} times the least"
        for rate in result.rates
    ]
    for line in lines:
        stdout.print(line, highlight=False, markup=False, soft_wrap=True)


_ROLES = (
    ("weights", 0),
    ("gradients", 3),
    ("optimizer", 2),
    ("gathered", 5),
    ("activations", 0),
    ("logits", 4),
)
