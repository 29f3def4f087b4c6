"""Rewards of points on real pages: every arm and seed from one start that sees; resumable.

    mira run --suite miniwob --tasks $TASKS --seeds 1000000-1000299 --policy oracle --planner reference \\
        --screenshots steps --out runs/learn
    mira run --suite miniwob --tasks $TASKS --seeds 0-39 --policy oracle --planner reference \\
        --screenshots steps --out runs/measure
    mira train examples runs/learn -o runs/learn.jsonl --ask element
    mira train examples runs/measure -o runs/measure.jsonl --ask element --allow-evaluation
    python -m benchmarks.grpo_grounding play --learn runs/learn.jsonl --measure runs/measure.jsonl --out runs/grounding
    python -m benchmarks.grpo_grounding table --out runs/grounding --write docs/results/grpo_grounding
    python -m benchmarks.grpo_gradients --kind points --out runs/grounding

TASKS: click-button,click-color,click-widget,click-test-2,click-tab,click-link,click-dialog-2,click-option,
click-checkboxes,focus-text-2,click-shades. Screenshots are cut to the 160 x 210 pixels of a MiniWoB++ task.
Half of the examples are cloned by the start, a LLaVA of 1.8 million parameters, for a few epochs; arms learn from the
other half, by 150 updates of 8 prompts x 8 completions. One core, beside another program: 4 s an update with what is
measured, 12 minutes for the start. Rewards of answers in tags need another start: `benchmarks.grpo_tagged`.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from agent.cli.options import parse_seeds
from benchmarks.grpo_arms import START, Results, Sets, Setting, play, read_results, table
from benchmarks.percentages import share
from benchmarks.toy_models.vision import patch_window, vision_model
from envs.core.errors import BadInput
from training.grpo.evaluation import encode_prompts, tokenizer_of
from training.grpo.examples import Example, read_examples, write_examples
from training.grpo.rewards import PointTarget
from training.grpo.run import load_start, save_start

AREA: Final = (160, 210)
"""Pixels of a MiniWoB++ task."""
WINDOW: Final = {"window": list(patch_window(AREA)), "edge": None}
"""LPO's windows, which match the patches of the encoder (§4.1), in the pixels of a task."""
EPOCHS, BATCH, RATE = 8, 32, 1e-3
"""Of the start's cloning."""
ARMS: Final[dict[str, dict[str, Any]]] = {
    "binary": {"reward": {"proximity": "none"}},
    "continuous": {"reward": {"proximity": "continuous"}},
    "ssl": {},
    "ssl_k2": {"reward": {"zones": 2}},
    "ssl_k8": {"reward": {"zones": 8}},
    "gui_g2": {"recipe": "ssl/gui-g2"},
    "in_box": {"reward": {"kind": "guirlvg", "format": "none"}, "scale_advantages": True},
    "distance": {
        "reward": {"kind": "guirlvg", "format": "none", "accuracy": "distance", "near_pixels": 9},
        "scale_advantages": True,
    },
    "distance_80": {"reward": {"kind": "guirlvg", "format": "none", "accuracy": "distance"}, "scale_advantages": True},
    "in_box_akf": {"reward": {"kind": "guirlvg", "format": "none"}, "scale_advantages": True, "kl_by_reward": True},
    "exploration": {"reward": {"kind": "adagui", "thought": "none"}, "scale_advantages": True},
    "lpo": {"reward": {"kind": "lpo", **WINDOW}, "scale_advantages": True, "clip_high": 0.28},
    "lpo_no_windows": {"reward": {"kind": "lpo", "windows": False}, "scale_advantages": True, "clip_high": 0.28},
}
"""What each changes of SSL's recipe. 9 pixels here are what GuirlVG's 80 pixels are on a screen of 1920 x 1080.
`gui_g2`: GUI-G²'s reward alone, SSL's continuous rival for places."""
BASE: Final[dict[str, Any]] = {
    "recipe": "ssl",
    "answer_tokens": 10,
    "micro_rows": 64,
    "steps": 150,
    "held_out_every": 25,
    "kl": 0.02,
    "optimization": {"learning_rate": 1e-4, "warmup": 0.05, "batch_rows": 64},
    "compute": {"max_tokens": 512, "threads": 1, "cpu": True},
}


def cut(examples: Sequence[Example], folder: Path) -> tuple[Example, ...]:
    """The task's own pixels of each screenshot; what lies beyond them is left out."""
    from PIL import Image

    found: list[Example] = []
    for example in examples:
        target, image = example.target, example.image
        if not isinstance(target, PointTarget) or image is None:
            raise BadInput(f"{example.name!r} asks for no point of an image")
        if target.box[2] > AREA[0] or target.box[3] > AREA[1]:
            continue
        path = folder / image.name
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            Image.open(image).convert("RGB").crop((0, 0, *AREA)).save(path)
        small = PointTarget(box=target.box, size=AREA)
        found.append(example.model_copy(update={"target": small, "image": path.resolve()}))
    return tuple(found)


def sets_of(learn: Path, measure: Path, out: Path) -> tuple[tuple[Example, ...], Sets]:
    """(cloned, what arms learn from and are measured on)."""
    learned = list(cut(read_examples(learn), out / "images"))
    random.Random(0).shuffle(learned)
    measured = cut(read_examples(measure), out / "images")
    half = len(learned) // 2
    asked = {(example.messages, example.image) for example in learned}
    apart = tuple(example for example in measured if (example.messages, example.image) not in asked)
    write_examples(out / "learned.jsonl", learned[half:])
    write_examples(out / "measured.jsonl", apart)
    return tuple(learned[:half]), Sets(tuple(learned[half:]), apart)


def start_of(cloned: Sequence[Example], out: Path) -> Path:
    """The checkpoint that every arm begins from; made where it is not there."""
    rows = [(example, centre_of(example)) for example in cloned]
    place = out / "start" / "model"
    return place if place.exists() else clone(vision_model(out / "start" / "fresh"), place, lambda _: rows, EPOCHS)


def centre_of(example: Example) -> str:
    """The centre of the target, in whole pixels."""
    assert isinstance(example.target, PointTarget)
    centre = example.target.region.centre
    return f"{centre.x:.0f}, {centre.y:.0f}"


Answered = Sequence[tuple[Example, str]]
"""Examples with the answers to clone."""


def clone(fresh: Path, place: Path, draw: Callable[[random.Random], Answered], epochs: int) -> Path:
    """Trains the checkpoint *fresh* on the answers that *draw* returns for each of the *epochs*, equally many each
    time, and writes it to *place*."""
    import torch

    torch.set_num_threads(1)
    model, processor = load_start(fresh, vision=True)
    rng = random.Random(0)
    batches = len(draw(random.Random(0))) // BATCH
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=epochs * batches + 1, pct_start=0.05)
    loss = torch.zeros(())
    for epoch in range(epochs):
        rows = list(draw(rng))
        rng.shuffle(rows)
        for number in range(batches):
            loss = model(**_with_answers(processor, rows[number * BATCH : (number + 1) * BATCH])).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        print(f"start: epoch {epoch + 1} of {epochs}, loss {loss.item():.3f}", flush=True)
    save_start(model, processor, place)
    return place


def _with_answers(processor: Any, rows: Answered) -> dict[str, Any]:
    """Prompts, their answers, and labels that count for these alone."""
    import torch

    tokenizer = tokenizer_of(processor)
    inputs = encode_prompts(processor, [example for example, _ in rows], 512)
    answers = [[*tokenizer.encode(answer), tokenizer.eos_token_id] for _, answer in rows]
    longest = max(map(len, answers))
    ids = torch.tensor([row + [tokenizer.pad_token_id] * (longest - len(row)) for row in answers])
    kept = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in answers])
    prompt = inputs["input_ids"]
    return {
        "input_ids": torch.cat([prompt, ids], 1),
        "attention_mask": torch.cat([inputs["attention_mask"], kept], 1),
        "labels": torch.cat([torch.full_like(prompt, -100), ids.masked_fill(kept == 0, -100)], 1),
        "pixel_values": inputs["pixel_values"],
    }


def task_table(results: Results, starts: Mapping[str, str] | None = None) -> str:
    """Markdown: the share of each task's examples that the start and each arm solve, means over seeds and late
    measurements. *starts*: as in :func:`benchmarks.grpo_arms.table`."""
    asked = Counter(map(_task, results.examples.names))
    arms: dict[str, list[Counter[str]]] = {}
    for run in results.runs:
        arms.setdefault((starts or {}).get(run.arm, START), [Counter(map(_task, run.start.solved))])
        arms.setdefault(run.arm, []).extend(Counter(map(_task, one.measured.solved)) for one in run.late)
    lines = [f"| task | examples | {' | '.join(arms)} |", f"|{' --- |' * (2 + len(arms))}"]
    for task, count in sorted(asked.items()):
        shares = [share(fmean(one[task] / count for one in taken)) for taken in arms.values()]
        lines.append(f"| {task} | {count} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def _task(name: str) -> str:
    """`click-tab` of `RUN/click-tab-3-a1/2`."""
    return re.sub(r"-\d+-a\d+$", "", name.split("/")[-2])


def write_tables(
    out: Path,
    write: Path,
    earlier: Path | None,
    order: Iterable[str],
    *,
    baseline: str = "binary",
    starts: Mapping[str, str] | None = None,
) -> None:
    """The table of arms, and that of tasks below it. *baseline* and *starts*: as in
    :func:`benchmarks.grpo_arms.table`. Raises BadInput."""
    path = out / "measured.jsonl"
    results = read_results(out, read_examples(path) if path.exists() else (), earlier, order=order)
    table(results, write, baseline=baseline, starts=starts)
    text = task_table(results, starts)
    with write.with_suffix(".md").open("a", encoding="utf-8") as file:
        file.write("\n" + text)
    print(text)


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, "binary,ssl,continuous")
    given = parser.parse_args()
    try:
        if given.what == "table":
            write_tables(given.out, given.write or given.out / "table", given.earlier, ARMS)
            return
        cloned, sets = sets_of(*files_of(given), given.out)
        setting = Setting(start_of(cloned, given.out), sets, BASE, ARMS, given.out)
        play(setting, given.arms.split(","), parse_seeds(given.seeds))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def add_options(parser: argparse.ArgumentParser, arms: str) -> None:
    """Adds the options of a benchmark of points; *arms*: those that are played without `--arms`."""
    parser.add_argument("what", choices=["play", "table"])
    parser.add_argument("--learn", type=Path)
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--arms", default=arms)
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--earlier", type=Path, help="JSON file of a table whose runs are added")


def files_of(given: argparse.Namespace) -> tuple[Path, Path]:
    """The files of `--learn` and `--measure`. Raises BadInput without them."""
    if given.learn is None or given.measure is None:
        raise BadInput("play needs --learn and --measure, files of `mira train examples`")
    return given.learn, given.measure


if __name__ == "__main__":
    main()
