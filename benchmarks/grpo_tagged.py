"""Rewards of answers in tags on real pages: GuirlVG's ladder, and LPO beside its three rivals; resumable.

    python -m benchmarks.grpo_tagged play --kind ladder --learn runs/learn.jsonl --measure runs/measure.jsonl \\
        --out runs/tagged
    python -m benchmarks.grpo_tagged table --kind ladder --out runs/tagged --write docs/results/grpo_ladder
    python -m benchmarks.grpo_tagged play --kind rivals --learn runs/learn.jsonl --measure runs/measure.jsonl \\
        --out runs/tagged
    python -m benchmarks.grpo_tagged table --kind rivals --out runs/tagged --write docs/results/grpo_rivals

The two files are those of `benchmarks.grpo_grounding`. Each arm is a row of `mira train recipes guirlvg` or of `lpo`:
its reward, group, β, clipping and question are the row's; only the size of the run is this benchmark's (`BASE`). Rows
ask for a point, a box or a box in JSON, so the start is measured with each of these questions.

The start is the LLaVA of `benchmarks.grpo_grounding` with one token for each tag. It has cloned right answers to four
forms of a question, drawn again for each example and epoch: a plain one with "x, y", and with a thought asked for a
point, a box or a box in JSON. Of the last three, three of four answers are `<think></think><answer>…</answer>` and the
fourth has no tags, so that a reward of the format has a signal.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.cli.options import parse_seeds
from benchmarks.grpo_arms import Setting, play
from benchmarks.grpo_grounding import (
    AREA,
    WINDOW,
    Answered,
    add_options,
    centre_of,
    clone,
    files_of,
    sets_of,
    write_tables,
)
from benchmarks.toy_models.vision import character_tokenizer, vision_model
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from models.vision.coordinates import Size
from models.vision.grounding import AnswerShape
from training.grpo.completion_length import TAGS, right_answer
from training.grpo.examples import Example
from training.grpo.prompts import PromptSettings, ask_as
from training.grpo.settings import parse_settings

WORDS: Final = ("<think>", "</think>", "<answer>", "</answer>")
TAGGED: Final = 0.75
"""Share of the answers to questions for a thought that the start has cloned with tags."""
EPOCHS: Final = 16
"""Of the start's cloning: each of the four forms of an example about four times."""
BASE: Final[dict[str, Any]] = {
    "answer_tokens": 48,
    "micro_rows": 64,
    "steps": 150,
    "held_out_every": 25,
    "optimization": {"learning_rate": 1e-4, "warmup": 0.05, "batch_rows": 48},
    "compute": {"max_tokens": 512, "threads": 1, "cpu": True, "lora": "none"},
}
"""The size of a run, over that of a row: 48 completions an update, 64 where a group has 16."""
_SIXTEEN: Final = {"optimization": {"batch_rows": 64}}
LADDER: Final[dict[str, dict[str, Any]]] = {
    "trivial": {"recipe": "guirlvg/trivial"},
    "soft-format": {"recipe": "guirlvg/soft-format"},
    "iou": {"recipe": "guirlvg/iou"},
    "distance": {"recipe": "guirlvg/distance"},
    "distance-9": {"recipe": "guirlvg/distance", "reward": {"near_pixels": 9}},
    "in-box": {"recipe": "guirlvg/in-box"},
    "kl-0": {"recipe": "guirlvg/kl-0"},
    "kl-1e-4": {"recipe": "guirlvg/kl-1e-4"},
    "adversarial": {"recipe": "guirlvg/adversarial"},
    "adversarial-1e-6": {"recipe": "guirlvg/adversarial-1e-6"},
}
"""GuirlVG's Tables 2 to 4, row by row. `distance-9`: 9 pixels here are the paper's 80 on a screen of 1920 x 1080. Left
out: rows of adapters and of the batch, which are the size of a run, and of the resolution, which all images share."""
RIVALS: Final[dict[str, dict[str, Any]]] = {
    "lpo": {"recipe": "lpo/full", "reward": WINDOW, **_SIXTEEN},
    "no-window": {"recipe": "lpo/no-window", **_SIXTEEN},
    "no-distance": {"recipe": "lpo/no-distance", "reward": WINDOW, **_SIXTEEN},
    "ui-r1": {"recipe": "lpo/ui-r1", **_SIXTEEN},
    "gui-r1": {"recipe": "lpo/gui-r1", **_SIXTEEN},
    "infigui-r1": {"recipe": "lpo/infigui-r1", "prompt": {"answer": "box"}, **_SIXTEEN},
}
"""LPO, its two ablations (Table 5) and its rivals (Table 1) with their rewards of type and format. `infigui-r1` asks
for a box: for a point its reward is that of `ui-r1`."""


class Kind(NamedTuple):
    """The arms of one table."""

    arms: dict[str, dict[str, Any]]
    baseline: str


KINDS: Final = {"ladder": Kind(LADDER, "trivial"), "rivals": Kind(RIVALS, "lpo")}


def label_of_start(arm: str, kind: str) -> str:
    """The start's row for *arm*: what its question asks for."""
    prompt = parse_settings(merged(BASE, KINDS[kind].arms[arm]), arm).prompt
    return "start, plain point" if prompt is None else f"start, {prompt.answer.value.replace('_', ' ')}"


def draw_answers(cloned: Sequence[Example], rng: random.Random) -> Answered:
    """Each of *cloned* in one form of its question, and the answer to clone. Raises BadInput for questions in words of
    their own."""
    return [_in_form(example, rng.choice((None, *AnswerShape)), rng) for example in cloned]


def _in_form(example: Example, shape: AnswerShape | None, rng: random.Random) -> tuple[Example, str]:
    if shape is None:
        return example, centre_of(example)
    (asked,), left = ask_as([example], PromptSettings(answer=shape), lambda _: Size(*AREA))
    if left:
        raise BadInput(
            f"{example.name!r} does not ask for an element: use files of `mira train examples --ask element`"
        )
    answer = right_answer(example.target, shape=shape)
    return asked, TAGS.format(answer) if rng.random() < TAGGED else answer


def start_of(cloned: Sequence[Example], out: Path) -> Path:
    """The checkpoint that every arm begins from; made where it is not there. Raises BadInput."""
    place = out / "start" / "model"
    if place.exists():
        return place
    fresh = vision_model(out / "start" / "fresh", tokenizer=character_tokenizer(*WORDS))
    return clone(fresh, place, lambda rng: draw_answers(cloned, rng), EPOCHS)


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", required=True, choices=list(KINDS))
    add_options(parser, "")
    given = parser.parse_args()
    kind, out = KINDS[given.kind], given.out / given.kind
    try:
        if given.what == "table":
            starts = {arm: label_of_start(arm, given.kind) for arm in kind.arms}
            write = given.write or out / "table"
            write_tables(out, write, given.earlier, kind.arms, baseline=kind.baseline, starts=starts)
            return
        cloned, sets = sets_of(*files_of(given), out)
        setting = Setting(start_of(cloned, given.out), sets, BASE, kind.arms, out)
        play(setting, given.arms.split(",") if given.arms else list(kind.arms), parse_seeds(given.seeds))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
