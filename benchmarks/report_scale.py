"""Time, memory and size of the report and of `mira show` for a run of 2,000 episodes, and an episode of 500 steps.

    python -m benchmarks.report_scale [--episodes 2000] [--steps 500] [--keep FOLDER]

The traces are made from records (page texts of 2,000 characters, prompts of 3,000, a picture a step where asked). Each
command runs in a process of its own, so the peak memory is its own.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

from agent.config import RunConfig
from agent.run.run_store import Job, Manifest, RunFolder
from envs.core.actions import ActionResult, Click, Status
from envs.core.tasks import Milestone, Score
from envs.core.trace import (
    Call,
    Commit,
    ElementKeyRecord,
    Footer,
    Header,
    Intent,
    ObservationRecord,
    PlanRecord,
    Rating,
    Timings,
    Totals,
)
from envs.core.trace_store import BlobStore, TraceWriter

AT = "2026-01-01T00:00:00Z"
MILESTONES = tuple(Milestone(id=f"m{k}", text=f"Milestone {k} of the task is reached") for k in range(1, 5))
WORDS = ("order", "basket", "price", "name", "product", "page", "customer", "wish list", "item", "row")


class Cost(NamedTuple):
    seconds: float
    cpu_s: float
    peak_mb: float


def make_run(folder: Path, episodes: int, steps: int, *, pictures: bool, seed: int = 0) -> RunFolder:
    """A run of *episodes*, about *steps* long each, half of them failures; one that lies there already is kept."""
    run, rng = RunFolder(folder), random.Random(seed)
    if run.manifest.exists():
        return run
    tasks = tuple(f"task-{n}" for n in range(min(episodes, 40)))
    seeds = tuple(range(-(-episodes // len(tasks))))
    run.create(
        Manifest(
            run_id=folder.name, created_at=AT, config=RunConfig(), suite="made", names=tasks, seeds=seeds, versions={}
        )
    )
    for job in run.read_manifest().jobs()[:episodes]:
        length = steps if episodes == 1 else max(1, steps + rng.randint(-2, 2))
        _write(run, job, length, rng, pictures=pictures)
    return run


def _write(run: RunFolder, job: Job, steps: int, rng: random.Random, *, pictures: bool) -> None:
    blobs = BlobStore(run.blobs)
    won = rng.random() < 0.5
    with TraceWriter(run.trace(job.episode_id), blobs) as trace:
        trace.append(
            Header(
                run_id=run.path.name,
                episode_id=job.episode_id,
                task=job.task,
                attempt=job.attempt,
                instruction=f"Find the {rng.choice(WORDS)} and write down its {rng.choice(WORDS)}",
                category=rng.choice(("shop", "forum", "cms", "map")),
                reference_milestones=MILESTONES,
                config={"policy": "embedded"},
                versions={},
                started_at=AT,
            )
        )
        trace.append(PlanRecord(step=1, cause="initial", milestones=MILESTONES, planner="reference"))
        for step in range(1, steps + 1):
            done = min(4 if won else 2, 4 * step // (steps + 1))
            trace.append(_intent(blobs, step, done, rng, pictures=pictures))
            result = ActionResult(status=Status.OK, message="")
            trace.append(Commit(step=step, result=result, timings=Timings(act=0.3, execute=0.2), at=AT))
        trace.append(_footer(steps, won))


def _intent(blobs: BlobStore, step: int, done: int, rng: random.Random, *, pictures: bool) -> Intent:
    text = "".join(f'[{n}] link "{rng.choice(WORDS)} {rng.random():.6f}"\n' for n in range(70))
    target = ElementKeyRecord(ref=3, frame="", role="link", name=rng.choice(WORDS), ordinal=0, digest="0" * 8)
    return Intent(
        step=step,
        seen=ObservationRecord(
            url=f"http://127.0.0.1/{rng.choice(WORDS)}",
            title=rng.choice(WORDS),
            digest=f"{rng.randrange(10**15):016d}",
            text_blob=blobs.put_text(text),
            keys_blob=blobs.put_text("[]"),
            controls_total=70,
            screenshot_blob=blobs.put(_picture(text)) if pictures else None,
            viewport=(1280, 720),
        ),
        rating=Rating(z=tuple(k < done for k in range(4)), source="state"),
        action=Click(ref=rng.randrange(3, 9)),
        raw='do(action="Click", element="3")',
        target=target,
        target_box=(200.0, 150.0, 90.0, 22.0),
        calls=(
            Call(
                role="policy",
                model="embedded",
                prompt_blob=blobs.put_json([{"role": "user", "text": text + text[:1000], "images": []}]),
                tokens_in=800,
                tokens_out=8,
                seconds=0.3,
            ),
        ),
        at=AT,
    )


def _picture(text: str) -> bytes:
    image = Image.new("RGB", (1280, 720), "white")
    ImageDraw.Draw(image).text((20, 20), text, fill="black")
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _footer(steps: int, won: bool) -> Footer:
    return Footer(
        outcome="success" if won else "failure",
        ended_by="stop",
        judged_by="checker",
        score=Score(status="success" if won else "failure", reward=float(won), evidence="the order's state"),
        rating=Rating(z=(True, True, won, won), source="state"),
        totals=Totals(steps=steps, seconds=steps * 0.5, tokens_in=800 * steps, tokens_out=8 * steps),
        at=AT,
    )


def measured(*words: str) -> Cost:
    """Wall and CPU seconds and peak memory of one command, its start included."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "agent.cli", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"mira {' '.join(words)} failed")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="where the traces are made, and found again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        many = make_run(root / "many", options.episodes, 5, pictures=False).path
        few = make_run(root / "few", max(1, options.episodes // 10), 5, pictures=False).path
        long = make_run(root / "long", 1, options.steps, pictures=True).path
        trace = next((long / "episodes").glob("*.jsonl"))
        print("| what | seconds | CPU s | peak MB | report MB |\n|---|---|---|---|---|")
        for name, words, page in (
            ("mira --help (start alone)", ("--help",), None),
            (f"show a run of {options.episodes}", ("show", str(many)), None),
            (f"show a trace of {options.steps} steps", ("show", str(trace)), None),
            (f"report of {max(1, options.episodes // 10)} episodes", ("report", str(few)), few / "report.html"),
            (f"report of {options.episodes} episodes", ("report", str(many)), many / "report.html"),
            (f"report of {options.steps} steps with pictures", ("report", str(long)), long / "report.html"),
            (f"quality of {options.episodes}", ("quality", str(many)), None),
            (f"eval of {max(1, options.episodes // 10)}", ("eval", str(few)), None),
            (f"eval of {options.episodes}", ("eval", str(many)), None),
            (f"compare {options.episodes} with {options.episodes // 10}", ("compare", str(many), str(few)), None),
        ):
            cost = measured(*words)
            size = f"{page.stat().st_size / 1e6:.1f}" if page else "-"
            print(f"| {name} | {cost.seconds:.2f} | {cost.cpu_s:.2f} | {cost.peak_mb:.0f} | {size} |", flush=True)


if __name__ == "__main__":
    main()
