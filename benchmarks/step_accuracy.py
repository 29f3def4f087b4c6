"""How often a small model does what the oracle did, step by step, given what the oracle saw: no browser, seconds.

    python -m benchmarks.step_accuracy models/embedded runs/oracle-test --json steps.json

A step counts where every token of its action is the model's first choice. Each is asked twice, with the milestone to
work on and without. Episodes of which every step is right are those that the model would play as the oracle did.

`mira eval steps` is for every other use. It scores recorded prompts, which either hold a milestone or do not, so it
cannot ask twice. Here both prompts are made from the observation, in the form that the embedded model is trained on,
and detours of `oracle:detours` are left out, as they are in its training. `benchmarks.actor_objectives` uses both.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.percentages import rate
from judges.statistics import proportion
from training.embedded.lessons import lessons_of
from training.embedded.synthetic import Example
from training.embedded.train import PAD, answer_logits, encode, to_tensors, token_id

BATCH = 8
ASKED = ("with the milestone", "without")
"""What each step's two prompts show, in their order."""


class Steps:
    """The steps of an oracle's successes in *runs*, in order. Raises BadInput where a place holds no trace."""

    def __init__(self, runs: Sequence[Path]) -> None:
        self._lessons = [one for one in lessons_of(runs) if one.kind == "act"]

    def __len__(self) -> int:
        return len(self._lessons)

    def right(self, folder: Path) -> tuple[list[bool], list[bool]]:
        """Of each step, whether the likeliest answer of the model in *folder* is the oracle's: for each of `ASKED`."""
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        return self._right(model, tokenizer, 0), self._right(model, tokenizer, 1)

    @torch.no_grad()
    def _right(self, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, asked: int) -> list[bool]:
        found: list[bool] = []
        for start in range(0, len(self._lessons), BATCH):
            chunk = self._lessons[start : start + BATCH]
            rows = [encode(tokenizer, Example(one.task.name, one.prompts[asked], one.answer)) for one in chunk]
            ids, mask = to_tensors(rows, token_id(tokenizer, PAD))
            logits, targets = answer_logits(model, ids, mask)
            parts = (logits.argmax(-1) == targets).split([len(row.answer) for row in rows])
            found += [bool(part.all()) for part in parts]
        return found

    def by_task(self, hits: Sequence[bool]) -> dict[str, list[bool]]:
        """*hits*, one for each step, of each task instance."""
        found: defaultdict[str, list[bool]] = defaultdict(list)
        for lesson, hit in zip(self._lessons, hits, strict=True):
            found[lesson.task.id].append(hit)
        return dict(found)


def accuracy_line(name: str, hits: Sequence[bool]) -> str:
    return f"| {name} | {sum(hits)}/{len(hits)} | {rate(proportion(sum(hits), len(hits)))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a model with its tokenizer")
    parser.add_argument("runs", type=Path, nargs="+", help="runs of an oracle")
    parser.add_argument("--json", type=Path, help="write every step's result here, too")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(args.threads)
    steps = Steps(args.runs)
    hits = steps.right(args.model)
    print("| step | right | share, 95 % |\n|---|---|---|")
    for name, found in zip(ASKED, hits, strict=True):
        print(accuracy_line(name, found))
    episodes = steps.by_task(hits[0])
    print(accuracy_line("whole tasks", [all(found) for found in episodes.values()]))
    if args.json is not None:
        args.json.write_text(json.dumps({"asked": ASKED, "tasks": episodes}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
