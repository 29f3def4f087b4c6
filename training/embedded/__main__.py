"""Trains the embedded model from scratch: `python -m training.embedded` (about 75 minutes on one core).

1. plays demonstrations with the scripted solvers on training seeds (from 1,000,000), in Chromium;
2. reads what runs of an oracle teach (`--runs`): actions, plans, whether a milestone is reached;
3. learns the tokenizer;
4. trains for `--minutes`, from nothing or from `--start`, and can be stopped and started again at any time;
5. writes models/embedded: weights, their ONNX graph, tokenizer, card.json. Needs the extras `training` and `dev`.

Everything in between lies in `--work`; what is there is used again. Measure the result with
`python -m training.embedded.evaluate`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from envs.core.atomic_write import replacing
from envs.core.errors import BadInput
from envs.suites.miniwob.task_sets import NAMED_TASKS, TRAINING_TASKS
from models.embedded import embedded_dir
from models.local.safe_loading import LOCAL, weights_problem
from models.local.safe_loading import WEIGHTS as SAFE_WEIGHTS
from training.embedded.demos import as_lesson, load, record
from training.embedded.export import export
from training.embedded.lesson import Lesson, split
from training.embedded.lessons import lessons_of
from training.embedded.lookalikes import make_lookalike
from training.embedded.lookalikes_sites import make_site_lookalike
from training.embedded.mixture import REAL_FROM, WEIGHTS, Mixture, read_weights
from training.embedded.synthetic import Example, make_example, make_examples
from training.embedded.tokenizer import build_tokenizer, with_words
from training.embedded.train import Recipe, Shape, Source, Trainer, build_model, give_words
from training.embedded.words import WordBag, lorem_words, package_words
from training.loop.curriculum import held_out

TOKENIZER_EXAMPLES = 15_000
SIZES = {"1m": Shape(), "3m": Shape(width=192, layers=6, heads=6, inner=512, context=2_048)}
RATES = {"1m": 2e-3, "3m": 1e-3}
"""At twice this rate the larger network hardly learns to copy (docs/results/training_trials.md)."""
TRAINED_START_RATE = 1e-3
"""Learning rate for a trained start."""


def demonstrations(path: Path, episodes: int) -> list[Lesson]:
    """Reads the demonstrations in *path*, or records *episodes* seeds of every training task if it does not exist."""
    if not path.exists():
        with replacing(path) as part:
            counts = asyncio.run(record(TRAINING_TASKS, range(episodes), part, recoveries=0.15))
        for name, (solved, played) in counts.items():
            print(f"{name}: {solved} of {played} demonstrations solved and kept")  # noqa: T201 - progress
    return [as_lesson(row) for row in load(path)]


def trainable(runs: list[Path]) -> list[Lesson]:
    """Returns the lessons of *runs* without the tasks held out for evaluation, and prints the number of those."""
    lessons = lessons_of(runs) if runs else []
    held = asyncio.run(held_out(lesson.task for lesson in lessons))
    for task, why in held.items():
        print(f"left out: {task.name} {task.seed}, {why}")  # noqa: T201 - it changes what is learned
    return [lesson for lesson in lessons if lesson.task not in held]


def tokenizer_at(folder: Path, lessons: list[Lesson]) -> PreTrainedTokenizerFast:
    """Returns the tokenizer in *folder*, trained first if there is none."""
    if not folder.exists():
        known = package_words()
        texts = [f"{e.prompt}\n{e.answer}" for e in make_examples(0, TOKENIZER_EXAMPLES, known)]
        real = [f"{lesson.prompts[0]}\n{lesson.answer}" for lesson in lessons]
        texts += [" ".join(known)] * 2 + real * max(1, 5_000 // max(1, len(real)))
        build_tokenizer(texts).save_pretrained(folder, save_jinja_files=False)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def worded(folder: Path, known: PreTrainedTokenizerFast, lessons: list[Lesson], words: int) -> PreTrainedTokenizerFast:
    """Returns the tokenizer in *folder*, built from *known* and *words* words of *lessons* if there is none."""
    if not folder.exists():
        prompts, answers = [lesson.prompts[0] for lesson in lessons], [lesson.answer for lesson in lessons]
        made = with_words(known, prompts, words, copied=answers)
        made.save_pretrained(folder, save_jinja_files=False)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def checks(held: list[Lesson], seed: int) -> dict[str, list[Example]]:
    """Returns small validation sets: general pages, pages like both suites', real steps of held-out episodes."""
    rng = random.Random(seed)
    bag = WordBag(rng, package_words(), lorem_words())
    sets = {
        "general": make_examples(seed, 30, package_words()),
        "shapes": [make_lookalike(rng, bag) for _ in range(80)],
        "site_shapes": [make_site_lookalike(rng, bag) for _ in range(40)],
    }
    for name in sorted({f"{lesson.task.suite}_{lesson.kind}" for lesson in held}):
        own = [lesson for lesson in held if f"{lesson.task.suite}_{lesson.kind}" == name]
        sets[name] = [Example(o.task.name, o.prompts[0], o.answer) for o in rng.sample(own, min(40, len(own)))]
    return sets


def skills(seed: int) -> Source:
    """Draws only general skill pages: copying, finding, choosing, filling in."""
    words = WordBag(random.Random(seed), package_words(), lorem_words())

    def draw(rng: random.Random, _used: float) -> Example:
        words.rng = rng
        return make_example(rng, words)

    return draw


def begin(args: argparse.Namespace, tokenizer: PreTrainedTokenizerFast) -> tuple[LlamaForCausalLM, Recipe]:
    """Returns the initial network for *tokenizer*'s tokens, and its training schedule."""
    recipe = Recipe(minutes=args.minutes, learning_rate=RATES[args.size], seed=args.seed)
    if not args.start:
        shape = SIZES[args.size]
        return build_model(replace(shape, context=2_048) if args.skills_only else shape, tokenizer, args.seed), recipe
    if problem := weights_problem(args.start):
        raise BadInput(problem)
    model = LlamaForCausalLM.from_pretrained(args.start, dtype=torch.float32, **SAFE_WEIGHTS)
    give_words(model, PreTrainedTokenizerFast.from_pretrained(args.start, **LOCAL), tokenizer)
    return model, replace(recipe, learning_rate=TRAINED_START_RATE, short_until=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=70.0, help="processor time of the training itself")
    parser.add_argument("--episodes", type=int, default=12, help="demonstrations of each task")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="runs of an oracle, to learn from as well")
    parser.add_argument("--size", choices=sorted(SIZES), default="1m", help="parameters")
    parser.add_argument(
        "--start", type=Path, help="model to continue from, with its tokenizer and size, as --skills-only makes it"
    )
    parser.add_argument(
        "--words", type=int, default=0, metavar="N", help="N frequent words of the real steps become tokens (--start)"
    )
    parser.add_argument(
        "--weights", metavar="PART=WEIGHT,…", help=f"what is seen, and how often; parts: {', '.join(WEIGHTS)}"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path("runs/embedded"))
    parser.add_argument("--out", type=Path, default=embedded_dir())
    parser.add_argument(
        "--skills-only",
        action="store_true",
        help="general made-up pages alone, nothing in the shapes of the benchmark's: a base for experiments",
    )
    args = parser.parse_args()
    if args.start and not (args.start / "config.json").exists():
        parser.error(f"--start {args.start}: there is no model in that folder")
    if args.words < 0 or (args.words and not args.start):
        parser.error("--words N adds N tokens or fewer to those of --start: name a model to continue from")
    if args.skills_only and (args.words or args.weights):
        parser.error("--skills-only sees general pages alone: leave --words and --weights out")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        make(args)
    except BadInput as error:
        parser.error(str(error))


def make(args: argparse.Namespace) -> None:
    """Trains the model that *args* describe. Raises BadInput."""
    weights = read_weights(args.weights) if args.weights else None
    torch.set_num_threads(args.threads)
    if args.skills_only:
        lessons, held, source = [], [], skills(args.seed)
        tokenizer = tokenizer_at(args.work / "tokenizer", [])
    else:
        known = demonstrations(args.work / "demos.jsonl", args.episodes) + trainable(args.runs)
        lessons, held = split(known)
        tokenizer = tokenizer_at(args.start or args.work / "tokenizer", lessons)
        if args.words:
            tokenizer = worded(args.work / "words", tokenizer, lessons, args.words)
        source = Mixture(lessons, args.seed, 0.0 if args.start else REAL_FROM, weights)
    model, recipe = begin(args, tokenizer)
    trainer = Trainer(model, tokenizer, source, recipe, args.work / "training")
    ended = trainer.run(checks(held, 99))
    card = {
        "name": "mira-embedded",
        "kind": "LlamaForCausalLM, float16",
        "license": "Apache-2.0",
        "never_trained_on": "seeds 0 to 9,999 of MiniWoB++, held-out templates of the sites",
        "not_for": "pages unlike those it was trained on: it finds, copies and chooses, it does not reason",
        "made_by": f"python -m training.embedded --minutes {args.minutes:g}"
        + f" --episodes {args.episodes}"
        + " --runs …" * bool(args.runs)
        + (" --start …" if args.start else f" --size {args.size}")
        + f" --words {args.words}" * bool(args.words)
        + (f" --weights {args.weights}" if args.weights else "")
        + " --skills-only" * args.skills_only,
        "shape": asdict(Shape.of(model)),
        "recipe": asdict(recipe),
        "steps": ended.step,
        "lessons": dict(Counter(f"{lesson.task.suite} {lesson.kind}" for lesson in lessons)),
        "tasks": list(NAMED_TASKS),
        "held_out": ended.scores,
    }
    size = export(model, tokenizer, args.out, card)
    print(f"{args.out}: {size / 1e6:.1f} MB after {ended.step} steps")  # noqa: T201 - the result


if __name__ == "__main__":
    main()
