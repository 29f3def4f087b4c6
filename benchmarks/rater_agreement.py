"""How often a model that rates milestones agrees with the state checkers, on recorded pages.

    mira run --suite miniwob --tasks … --seeds 10-11 --policy oracle --planner reference --out runs/rated
    mira run --suite miniwob --tasks … --seeds 10-11 --policy embedded --planner reference --out runs/rated
    python -m benchmarks.rater_agreement runs/rated --answers runs/rated/short.jsonl --style short --each 30 \
        --rater openai:qwen2.5-coder-1.5b --base-url http://127.0.0.1:8011/v1

At a page of an episode the rater is asked about the first milestone that the checkers had not seen achieved before; the
checkers say whether it is now. *each*: so many questions whose answer is yes and so many whose answer is no, the same
for every rater. Answers are appended to a file; an interrupted measurement continues.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from benchmarks.judge_agreement import Case, cases, progress_at_each_step
from envs.core.json_lines import json_lines
from envs.core.record import Record
from judges.autorater import RaterSettings
from judges.base import AutoRater, Progress
from judges.registry import make_rater
from judges.statistics import proportion
from models.base import ModelError
from models.local.declarations import RoleStyle
from models.specs import make_model


@dataclass(frozen=True, slots=True)
class Question:
    episode: str
    step: int
    progress: Progress
    index: int
    achieved: bool
    """According to the state checkers."""

    @property
    def key(self) -> str:
        """What is shown: questions that look alike are asked once."""
        shown = self.progress
        return f"{shown.milestones[self.index].text}\n{shown.observation.text}\n{len(shown.history)}"


class Answered(Record):
    """One line of the answers' file."""

    episode: str
    step: int
    milestone: str
    achieved: bool
    answer: bool | None
    """None: no usable answer."""
    reason: str
    seconds: float


def questions(folders: Sequence[Path], each: int) -> list[Question]:
    """The chosen questions, those with the answers yes and no by turns."""
    asked = {one.key: one for case in cases(folders) for one in _of(case)}
    drawn = sorted(asked.values(), key=lambda one: one.key)
    random.Random(0).shuffle(drawn)
    sides = [[one for one in drawn if one.achieved == achieved][:each] for achieved in (True, False)]
    return [one for pair in zip(*sides, strict=False) for one in pair]


def _of(case: Case) -> Iterator[Question]:
    before: tuple[bool, ...] = (False,) * len(case.trace.header.reference_milestones)
    steps = zip(progress_at_each_step(case, before), case.trace.steps, strict=True)
    for progress, (intent, _) in steps:
        now = intent.rating.z
        index = next((place for place, achieved in enumerate(before) if not achieved), None)
        if index is not None and progress.history and len(now) == len(before):
            task = case.trace.header.task.id
            yield Question(task, intent.step, replace(progress, z=before), index, now[index])
        before = now or before


def read_answers(file: Path) -> list[Answered]:
    if not file.exists():
        return []
    return [Answered.model_validate_json(line) for line in json_lines(file.read_text("utf-8"))]


async def ask_all(rater: AutoRater, chosen: Sequence[Question], file: Path) -> list[Answered]:
    known = read_answers(file)
    done = {(one.episode, one.step, one.milestone) for one in known}
    for question in chosen:
        milestone = question.progress.milestones[question.index].text
        if (question.episode, question.step, milestone) in done:
            continue
        begun = time.monotonic()
        try:
            rating = (await rater.rate(question.progress)).rating
            answer, reason = rating.z[question.index], rating.reason
        except ModelError as error:
            answer, reason = None, f"{type(error).__name__}: {error}"
        row = Answered(
            episode=question.episode,
            step=question.step,
            milestone=milestone,
            achieved=question.achieved,
            answer=answer,
            reason=reason[:300],
            seconds=round(time.monotonic() - begun, 1),
        )
        known.append(row)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(row.model_dump_json() + "\n")
        print(f"{len(known)} of {len(chosen)}: {row.achieved} {row.answer} {milestone}", flush=True)
    return known


def result(rows: Sequence[Answered]) -> dict[str, Any]:
    sides = {
        name: [row for row in rows if row.achieved == achieved] for name, achieved in (("yes", True), ("no", False))
    }
    return {
        "questions": len(rows),
        "no_answer": sum(row.answer is None for row in rows),
        "agreement": str(proportion(sum(row.answer == row.achieved for row in rows), len(rows))),
        "of_achieved": str(proportion(sum(row.answer is True for row in sides["yes"]), len(sides["yes"]))),
        "of_open": str(proportion(sum(row.answer is False for row in sides["no"]), len(sides["no"]))),
        "seconds": round(sum(row.seconds for row in rows) / max(1, len(rows)), 1),
    }


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    async with aclosing(make_model(options.rater, base_url=options.base_url)) as model:
        rater = make_rater(options.rater, model, RaterSettings(budget=0, deadline_s=1800), style=options.style)
        return result(await ask_all(rater, questions(options.folders, options.each), options.answers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="runs with the planner `reference`")
    parser.add_argument("--answers", type=Path, required=True, help="file of this rater's answers")
    parser.add_argument("--rater", required=True, help="model spec")
    parser.add_argument("--base-url")
    parser.add_argument("--style", choices=get_args(RoleStyle), required=True)
    parser.add_argument("--each", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured = asyncio.run(measure(options))
    print(json.dumps(measured) if options.json else "\n".join(f"{name}: {value}" for name, value in measured.items()))


if __name__ == "__main__":
    main()
