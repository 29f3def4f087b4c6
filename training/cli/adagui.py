"""`mira train adagui-data`: thoughts to imitate, on hard steps only."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import BaseUrl, check_base_url
from agent.cli.output import EXIT_FAILED, EXIT_OK, print_json, print_problem, stderr, stdout
from agent.cli.outputs import output_file
from envs.core.errors import BadInput
from training.cli.grpo import Examples
from training.cli.messages import (
    AsJson,
    Changes,
    Config,
    changes_option,
    log,
    needs_extra,
    reporting_full_disk,
    watcher_of,
)

if TYPE_CHECKING:
    from training.engine.progress import Watcher
    from training.grpo.adaptive.data import AdaptiveSummary
    from training.grpo.adaptive.settings import AdaptiveSettings
    from training.grpo.examples import Example


def adagui_data(
    examples: Examples,
    out: Annotated[Path, output_file("Output file; an interrupted command continues.")],
    policy: Annotated[
        str, typer.Option(help="Model whose sampled answers measure the difficulty of a step: the start of the SFT.")
    ],
    judge: Annotated[
        str, typer.Option(help="Model that writes thoughts, and judges whether they lead to the right action.")
    ],
    recipe: Annotated[
        str | None,
        typer.Option(help="Row of AdaGUI-R1's table: adagui/full, no-revision or all-thoughts; default: none."),
    ] = None,
    config: Config = None,
    change: Annotated[Changes, changes_option("samples=4")] = None,
    base_url: BaseUrl = None,
    as_json: AsJson = False,
) -> int:
    """Write thoughts for hard examples, as AdaGUI-R1 does, for `mira train sft` to imitate."""
    needs_extra()
    from agent.cli.display import RunDisplay
    from models.base import ModelError, ModelUnavailable
    from training.grpo.adaptive.settings import AdaptiveSettings
    from training.grpo.examples import check_images, read_example_files

    check_base_url(base_url, (policy, judge), "--policy")
    settings = AdaptiveSettings.load(config, change or (), recipe)
    read = read_example_files(examples)
    check_images(read)
    with reporting_full_disk(out), RunDisplay(stderr, None if as_json else stderr) as display:
        try:
            result = asyncio.run(_make(read, out, (policy, judge), settings, base_url, watcher_of(display)))
        except ModelUnavailable:
            raise
        except ModelError as error:
            print_problem(f"{' '.join(str(error).split())}; continue with the same command")
            return EXIT_FAILED
    if as_json:
        print_json(result.model_dump(mode="json"))
        return EXIT_OK
    levels = ", ".join(f"level {level}: {count}" for level, count in result.levels.items())
    lines = (
        f"{result.examples} examples ({levels}), {result.hard} hard: {result.file}",
        f"{result.thoughts} thoughts: {result.agreed} led to the action at once, {result.revised} were revised",
        f"{result.left_out} examples left out" if result.left_out else "",
        f"{result.calls} calls, {result.tokens_in} tokens in, {result.tokens_out} out",
    )
    for line in filter(None, lines):
        stdout.print(line, highlight=False, markup=False)
    return EXIT_OK


async def _make(
    examples: tuple[Example, ...],
    out: Path,
    specs: tuple[str, str],
    settings: AdaptiveSettings,
    base_url: str | None,
    watch: Watcher,
) -> AdaptiveSummary:
    from models.specs import make_model
    from models.vision.checkpoints import vision_profile
    from training.grpo.adaptive.data import make_adaptive
    from training.grpo.adaptive.steps import SeeingModel, StepMaker

    space = None if settings.coordinates == "auto" else settings.coordinates
    seeing = {spec: vision_profile(spec) for spec in specs}
    if blind := [spec for spec, profile in seeing.items() if profile is None and examples[0].image is not None]:
        raise BadInput(f"the examples have images, and {blind[0]} reads text only")
    async with AsyncExitStack() as stack:
        models: dict[str, SeeingModel] = {}
        for spec, profile in seeing.items():
            model = make_model(spec, base_url=base_url)
            stack.push_async_callback(model.aclose)
            models[spec] = SeeingModel(model, profile, space)
        maker = StepMaker(models[specs[0]], models[specs[1]], settings)
        return await make_adaptive(examples, out, maker, log, watch)
