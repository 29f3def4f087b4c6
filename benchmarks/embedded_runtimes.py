"""The embedded model on ONNX Runtime and on torch: which answers differ, and the time of a step on each.

    mira run --suite miniwob --tasks login-user,enter-text --seeds 0-4 --out runs/prompts
    python -m benchmarks.embedded_runtimes runs/prompts

Every distinct prompt of the runs' calls (policy, planner and rater) is answered by both, greedily, one after the other
and in alternating order, in one process with one thread each.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from agent.run.discover_traces import discover_traces
from envs.core.json_lines import json_lines
from models.embedded import embedded_dir
from models.local.continuation import Job, Row, TextGenerator
from models.local.embedded_onnx import load_embedded
from models.local.loading import load_generator

LONGEST_ANSWER = 160


@dataclass
class Times:
    """Seconds for each prompt."""

    wall: list[float] = field(default_factory=list[float])
    processor: list[float] = field(default_factory=list[float])

    def summary(self) -> dict[str, float]:
        walls = sorted(self.wall)
        return {
            "median_ms": round(1e3 * median(walls), 2),
            "p90_ms": round(1e3 * walls[int(0.9 * (len(walls) - 1))], 2),
            "processor_ms": round(1e3 * fmean(self.processor), 2),
        }


def prompts_of(runs: Sequence[Path]) -> list[tuple[int, ...]]:
    """The distinct prompts of all model calls in the traces, as token ids."""
    lines = (line for file in discover_traces(runs) for line in json_lines(file.path.read_text(encoding="utf-8")))
    return list(dict.fromkeys(prompt for line in lines for prompt in _prompts(json.loads(line))))


def _prompts(value: Any) -> Iterator[tuple[int, ...]]:
    if isinstance(value, dict):
        if value.get("prompt_token_ids"):
            yield tuple(value["prompt_token_ids"])
        for inner in value.values():
            yield from _prompts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _prompts(inner)


def answered(generator: TextGenerator, prompt: tuple[int, ...], times: Times) -> Row:
    job = Job(prompt, LONGEST_ANSWER, temperature=0.0, seed=None, stop=(), ends_at=time.monotonic() + 600)
    wall, processor = time.perf_counter(), time.process_time()
    (row,) = generator.run([job])
    times.wall.append(time.perf_counter() - wall)
    times.processor.append(time.process_time() - processor)
    return row


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("runs", type=Path, nargs="+")
    prompts = prompts_of(options.parse_args().runs)
    if not prompts:
        options.error("no call of these runs has token ids: play them with --policy embedded")
    torch_generator, _ = load_generator(embedded_dir(), None, "embedded")
    runtimes: dict[str, TextGenerator] = {"onnx": load_embedded(embedded_dir()).generator, "torch": torch_generator}
    for generator in runtimes.values():
        answered(generator, prompts[0], Times())
    times = {name: Times() for name in runtimes}
    differ: list[dict[str, str]] = []
    widest = 0.0
    for number, prompt in enumerate(prompts):
        order = list(runtimes) if number % 2 else list(reversed(runtimes))
        rows = {name: answered(runtimes[name], prompt, times[name]) for name in order}
        if rows["onnx"].tokens == rows["torch"].tokens:
            pairs = zip(rows["onnx"].logprobs, rows["torch"].logprobs, strict=True)
            widest = max(widest, *(abs(one - other) for one, other in pairs))
        else:
            differ.append({name: row.text for name, row in rows.items()})
    summary = {
        "prompts": len(prompts),
        "tokens": {"prompt": round(fmean(map(len, prompts)), 1)},
        "answers_that_differ": differ,
        "largest_difference_of_a_log_probability": float(f"{widest:.2g}"),
        **{name: one.summary() for name, one in times.items()},
    }
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
