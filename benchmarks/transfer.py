"""Transfer from perception to planning (SSL, Table 3): GRPO on points, evaluation on steps; resumable.

    mira data import gui-r1-3k PATH/TO/GUI-R1-3K --ask goal --coordinates resized -o runs/points.jsonl
    mira data import android-control PATH/TO/android_control --split test --low --coordinates resized -o runs/low.jsonl
    python -m benchmarks.transfer --points runs/points.jsonl --steps runs/low.jsonl --recipes ssl/binary,ssl/tiered \\
        --start PATH/TO/Qwen2.5-VL-3B-Instruct --set coordinates=resized --out runs/transfer

Each recipe trains from the start on the points alone. The start and each trained model answer every step once, at
temperature 0, as `mira eval planning` asks, in the coordinates of their family, for which points and steps must ask.
Type, GR and SR have Wilson's intervals. A change is a trained model's share less the start's on the same steps, with a
bootstrap over whole episodes; that of GR is over steps that both answered by a click. The same command continues an
interrupted run. OUT/RECIPE/seed-N is the training; OUT/start and OUT/RECIPE/seed-N-steps hold the answers.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agent.cli.options import parse_seeds
from agent.cli.output import print_json
from benchmarks.percentages import points, rate
from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import RESAMPLES, Estimate, clustered_mean
from models.base import ModelError
from models.vision.coordinates import CoordinateSpace
from training.cli.evaluate_planning import ask_steps, profile_for
from training.engine.trainer import TrainingDiverged
from training.grpo.examples import Example, check_images, read_example_files, read_examples
from training.grpo.rewards import PointTarget
from training.grpo.run import train_grpo
from training.grpo.settings import GrpoSettings, load_settings
from training.starts import start_folder
from training.step_accuracy.answers import AskedStep, asked_steps, check_units, scale_in
from training.step_accuracy.report import PlanningScore, ScoredStep, score_answers, summarise

START: Final = "start"
"""The arm that is not trained."""


class Change(Record):
    """A trained model less the start, on the same steps; intervals are of a bootstrap over episodes."""

    type: Estimate
    grounding: Estimate
    """Over the steps that both answered by a click at a place."""
    success: Estimate


class ArmScore(Record):
    """One model on one file of steps."""

    steps: str
    """The file's name without its ending."""
    arm: str
    """`start`, or a recipe."""
    seed: int | None
    """Of the training; None for the start."""
    score: PlanningScore
    change: Change | None
    """None for the start."""


class StepFile(NamedTuple):
    """A file of step examples."""

    name: str
    steps: tuple[AskedStep, ...]


class Arm(NamedTuple):
    """A checkpoint that answers steps."""

    name: str
    seed: int | None
    checkpoint: Path
    answers: Path
    """Folder of its answers, with a folder for each file of steps."""


def read_points(files: Sequence[Path]) -> tuple[Example, ...]:
    """Reads examples to train on. Raises BadInput if one asks for anything but a point."""
    points = read_example_files(files)
    for example in points:
        if not isinstance(example.target, PointTarget):
            raise BadInput(
                f"--points: example {example.name!r} is a {example.target.kind}: make points of --ask element"
            )
    check_images(points)
    return points


def read_steps(files: Sequence[Path]) -> tuple[StepFile, ...]:
    """Reads the files to evaluate on. Raises BadInput for an example that is no step, and for two files of one name."""
    read: dict[str, StepFile] = {}
    for file in files:
        if file.stem in read:
            raise BadInput(f"--steps: two files are named {file.stem!r}: rename one")
        examples = read_examples(file)
        check_images(examples)
        read[file.stem] = StepFile(file.stem, asked_steps(examples))
    return tuple(read.values())


def count_shared_pictures(points: Sequence[Example], files: Sequence[StepFile]) -> int:
    """Number of steps whose screenshot, byte for byte, is one of *points*'."""
    seen = {example.picture_digest for example in points} - {None}
    return sum(step.example.picture_digest in seen for file in files for step in file.steps)


def answered(arm: Arm, file: StepFile, *, max_tokens: int, workers: int) -> list[ScoredStep]:
    """Asks the checkpoint for the answers that its folder lacks, as `mira eval planning` does, and scores them. Raises
    BadInput if it reads text only and the steps show screenshots, or if they ask for other coordinates."""
    spec = f"local:{arm.checkpoint}"
    profile = profile_for(spec, "auto", file.steps)
    check_units(file.steps, profile.space)
    given = ask_steps(spec, profile, None, file.steps, arm.answers / file.name, max_tokens, workers, quiet=True)
    return score_answers(file.steps, given, lambda step: scale_in(step, profile.space, profile))


def check_coordinates(start: Path, files: Sequence[StepFile], trained: Iterable[CoordinateSpace]) -> None:
    """Raises BadInput if steps ask for other coordinates than those of the start or of a trained model, or if the start
    reads text only and they show screenshots. Called before hours of training."""
    for file in files:
        for space in (profile_for(f"local:{start}", "auto", file.steps).space, *trained):
            check_units(file.steps, space)


def change_of(start: Sequence[ScoredStep], trained: Sequence[ScoredStep]) -> Change:
    """The change from *start* to *trained*, scores of the same steps in one order."""
    pairs = list(zip(start, trained, strict=True))
    clicked = [(a, b) for a, b in pairs if a.score.grounded is not None and b.score.grounded is not None]

    def mean(kept: Sequence[tuple[ScoredStep, ScoredStep]], right: Callable[[ScoredStep], bool]) -> Estimate:
        differences = [float(right(b)) - float(right(a)) for a, b in kept]
        return clustered_mean(differences, [a.step.episode for a, _ in kept], resamples=RESAMPLES, seed=0)

    return Change(
        type=mean(pairs, lambda one: one.score.type_right),
        grounding=mean(clicked, lambda one: bool(one.score.grounded)),
        success=mean(pairs, lambda one: one.score.success),
    )


def trained_arms(
    points: Sequence[Example], start: Path, settings: Mapping[tuple[str, int], GrpoSettings], out: Path
) -> Iterator[Arm]:
    """Trains each (recipe, seed) of *settings* from *start*, or continues its training, and yields it."""
    for (recipe, seed), chosen in settings.items():
        folder = out / recipe.replace("/", "-")
        _log(f"{recipe}, seed {seed}: training on {len(points)} points")
        result = train_grpo(points, str(start), folder / f"seed-{seed}", chosen, log=_log)
        yield Arm(recipe, seed, result.model, folder / f"seed-{seed}-steps")


def settings_of(
    config: Path | None, recipes: Sequence[str], seeds: Sequence[int], changes: Sequence[str]
) -> dict[tuple[str, int], GrpoSettings]:
    """The settings of each recipe and seed. Raises BadInput."""
    return {
        (recipe, seed): load_settings(config, [f"recipe={recipe}", *changes, f"seed={seed}"])
        for recipe in recipes
        for seed in seeds
    }


def compare(arms: Sequence[Arm], files: Sequence[StepFile], *, max_tokens: int, workers: int) -> Iterator[ArmScore]:
    """Evaluates each of *arms*, of which the first is the start, on each of *files*."""
    for file in files:
        start: list[ScoredStep] | None = None
        for arm in arms:
            _log(f"{arm.name}: {len(file.steps)} steps of {file.name}")
            scored = answered(arm, file, max_tokens=max_tokens, workers=workers)
            change = None if start is None else change_of(start, scored)
            start = scored if start is None else start
            score = summarise(f"local:{arm.checkpoint}", scored)
            yield ArmScore(steps=file.name, arm=arm.name, seed=arm.seed, score=score, change=change)


_COLUMNS: Final = ("steps", "model", "seed", "n", "Type", "GR", "SR", "Type change", "GR change", "SR change")


def table(rows: Sequence[ArmScore]) -> str:
    """The rows in Markdown: shares in percent, changes in points."""
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{' --- |' * len(_COLUMNS)}"]
    for row in rows:
        overall, change = row.score.overall, row.change
        shares = (overall.type.wilson, overall.grounding.wilson, overall.success.wilson)
        changes = (None,) * 3 if change is None else (change.type, change.grounding, change.success)
        named = (row.steps, row.arm, "" if row.seed is None else str(row.seed), str(overall.steps))
        cells = (*named, *map(rate, shares), *("" if one is None else points(one) for one in changes))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=Path, action="append", required=True, help="point examples; repeatable")
    parser.add_argument("--steps", type=Path, action="append", required=True, help="step examples; repeatable")
    parser.add_argument("--start", required=True, help="checkpoint to start from")
    parser.add_argument("--recipes", default="ssl/tiered", help="recipes of `mira train recipes`, separated by commas")
    parser.add_argument("--seeds", default="0", help="seeds of the training, such as 0-2")
    parser.add_argument("-c", "--config", type=Path, help="settings of `mira train grpo` in TOML")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting; repeatable"
    )
    parser.add_argument("--max-tokens", type=int, default=512, help="longest visible answer to a step")
    parser.add_argument("--workers", type=int, default=1, help="questions in flight")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    return parser.parse_args()


def main() -> None:
    warnings.filterwarnings("ignore")
    given = _arguments()
    try:
        examples, files = read_points(given.points), read_steps(given.steps)
        settings = settings_of(given.config, given.recipes.split(","), parse_seeds(given.seeds), given.set)
        if shared := count_shared_pictures(examples, files):
            _log(f"warning: {shared} steps show a screenshot that the points train on: this is no transfer")
        start = start_folder(given.start)
        check_coordinates(start, files, {one.coordinates for one in settings.values()})
        arms = [Arm(START, None, start, given.out / START), *trained_arms(examples, start, settings, given.out)]
        rows = list(compare(arms, files, max_tokens=given.max_tokens, workers=given.workers))
    except (BadInput, ModelError, TrainingDiverged) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if given.json:
        print_json([row.model_dump(mode="json") for row in rows])
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
