"""Tokens a second of `local:` in float32 and bfloat16, with and without packed weights, and of llama.cpp, on one GGUF
file in one run.

    python -m benchmarks.local_speed FILE.gguf --llama-python build/llama-cpp/bin/python [--json]

All get the same prompts as token ids and the same number of threads, in turns: each round measures every runtime, in an
order that rotates. `in` is a prompt without any cached prefix, up to its first token; `out` are the greedy tokens after
it. Rates are medians over the rounds, by the clock and by CPU seconds (with --threads 1 those do not depend on other
processes); a ratio divides them by llama.cpp's. llama.cpp multiplies the quantized weights; `local:` plays their
dequantized copy.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from collections.abc import Generator as Generates
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import torch

from models.local.batch_generation import Generator
from models.local.continuation import Job
from models.local.cores import usable_cores
from models.local.decode_attention import speed_up_decoding
from models.local.loading import Checkpoint, read_checkpoint
from models.local.packed_weights import pack_weights
from models.local.prefix_cache import PrefixCache

WORKER: Final = Path(__file__).with_name("llama_worker.py")
TEXT: Final = """The page has these elements:
[{number}] link "Entry {number} of the catalogue, {other} copies" -> /entry/{number}
"""
LLAMA: Final = "llama.cpp"
WEIGHTS: Final = ("float32", "bfloat16, unpacked", "bfloat16")

SECONDS: Final = ("in_s", "out_s", "in_cpu_s", "out_cpu_s")
"""What is measured: seconds of the prompt and of the tokens after it, by the clock and of the CPU."""

Measure = Callable[[Sequence[int], int], dict[str, float]]
"""Measures a prompt and a number of tokens after it; returns SECONDS."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Median tokens a second of one runtime, by the name of the seconds, and their ratios to llama.cpp's."""

    runtime: str
    rates: dict[str, float]
    ratios: dict[str, float]
    """Empty without llama.cpp."""


def local(read: Checkpoint, weights: str) -> Measure:
    """A measure of `local:` with *weights* of WEIGHTS."""
    name, _, unpacked = weights.partition(", ")
    dtype = getattr(torch, name)
    model = read.model if read.model.dtype == dtype else copy.deepcopy(read.model).to(dtype)
    speed_up_decoding(model)
    if not unpacked:
        pack_weights(model)
    generator = Generator(model, read.tokenizer, frozenset())  # no token ends the answer

    def measure(prompt: Sequence[int], out: int) -> dict[str, float]:
        generator.prefixes = PrefixCache(model)
        wall, cpu = [time.perf_counter()], [time.process_time()]
        for tokens in (1, out):  # the second time the prompt is cached
            generator.run([_job(prompt, tokens)])
            wall.append(time.perf_counter())
            cpu.append(time.process_time())
        return dict(zip(SECONDS, (*_differences(wall), *_differences(cpu)), strict=True))

    return measure


def _differences(moments: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(moments)]


def _job(prompt: Sequence[int], tokens: int) -> Job:
    return Job(tuple(prompt), tokens, 0.0, None, (), time.monotonic() + 3600)


@contextmanager
def llama(python: Path, file: Path, threads: int, context: int) -> Generates[Measure]:
    command = [str(python), str(WORKER), str(file), "--threads", str(threads), "--context", str(context)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()

        def measure(prompt: Sequence[int], out: int) -> dict[str, float]:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"prompt": list(prompt), "out": out}) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield measure
        process.stdin.close()


def prompts(tokenizer: Any, count: int, length: int) -> list[list[int]]:
    """*count* prompts of *length* tokens that differ from their first line on."""
    texts = [
        "".join(TEXT.format(number=n + 1000 * k, other=n * k % 97) for n in range(length)) for k in range(1, count + 1)
    ]
    return [tokenizer.encode(text)[:length] for text in texts]


def measured(runtimes: dict[str, Measure], asked: Sequence[Sequence[int]], out: int) -> list[Speed]:
    """Measures every runtime on every prompt, in turns. The first prompt warms up."""
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in runtimes}
    names = list(runtimes)
    for turn, prompt in enumerate(asked):
        place = turn % len(names)
        for name in names[place:] + names[:place]:
            seconds = runtimes[name](prompt, out)
            print(turn, name, {key: round(value, 2) for key, value in seconds.items()}, file=sys.stderr, flush=True)
            if turn:
                rows[name].append(seconds)
    tokens = {key: out if key.startswith("out") else len(asked[0]) for key in SECONDS}
    rates = {
        name: {key: statistics.median(tokens[key] / row[key] for row in measured) for key in SECONDS}
        for name, measured in rows.items()
    }
    base = rates.get(LLAMA, {})
    return [
        Speed(
            name,
            {key: round(value, 1) for key, value in rate.items()},
            {key: round(rate[key] / value, 2) for key, value in base.items()},
        )
        for name, rate in rates.items()
    ]


def table(speeds: Sequence[Speed]) -> str:
    heads = ("runtime", "tokens in / s", "out / s", "in / CPU s", "out / CPU s")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for speed in speeds:
        cells = [f"{speed.rates[key]:g}" + (f" (× {speed.ratios[key]:g})" if speed.ratios else "") for key in SECONDS]
        lines.append(f"| {speed.runtime} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="GGUF file")
    parser.add_argument("--llama-python", type=Path, help="Python of an environment with llama-cpp-python")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--rounds", type=int, default=5, help="measured prompts (%(default)s); one more warms up")
    parser.add_argument("--tokens-in", type=int, default=900)
    parser.add_argument("--tokens-out", type=int, default=32)
    parser.add_argument("--weights", nargs="+", choices=WEIGHTS, default=WEIGHTS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    read = read_checkpoint(options.file, on_cpu=True)
    runtimes = {f"local: {weights}": local(read, weights) for weights in options.weights}
    asked = prompts(read.tokenizer, options.rounds + 1, options.tokens_in)
    if options.llama_python is None:
        speeds = measured(runtimes, asked, options.tokens_out)
    else:
        context = options.tokens_in + options.tokens_out + 8
        with llama(options.llama_python, options.file, options.threads, context) as other:
            speeds = measured({**runtimes, LLAMA: other}, asked, options.tokens_out)
    rows = {"threads": options.threads, "load": os.getloadavg()[0], "speeds": [asdict(speed) for speed in speeds]}
    print(json.dumps(rows, indent=2) if options.json else table(speeds))


if __name__ == "__main__":
    main()
