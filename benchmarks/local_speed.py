"""Tokens a second of `local:` in float32 and bfloat16, and of llama.cpp, on one GGUF file in one run.

    python -m benchmarks.local_speed FILE.gguf --llama-python build/llama-cpp/bin/python [--json]

All get the same prompts as token ids and the same number of threads, in turns: each round measures every runtime, in an
order that rotates. `in` is a prompt without any cached prefix, up to its first token; `out` are the greedy tokens after
it. Medians over the rounds; a ratio is llama.cpp's median of the same run divided into that of `local:`. llama.cpp
multiplies the quantized weights; `local:` plays their dequantized copy.
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
from pathlib import Path
from typing import Any, Final

import torch

from models.local.batch_generation import Generator
from models.local.continuation import Job
from models.local.cores import usable_cores
from models.local.loading import Checkpoint, read_checkpoint
from models.local.prefix_cache import PrefixCache

WORKER: Final = Path(__file__).with_name("llama_worker.py")
TEXT: Final = """The page has these elements:
[{number}] link "Entry {number} of the catalogue, {other} copies" -> /entry/{number}
"""
LLAMA: Final = "llama.cpp"

Measure = Callable[[Sequence[int], int], tuple[float, float]]
"""(seconds of a prompt, seconds of the tokens after it)"""


@dataclass(frozen=True, slots=True)
class Speed:
    """Medians of one runtime."""

    runtime: str
    tokens_in_per_s: float
    tokens_out_per_s: float
    in_ratio: float | None
    """Of llama.cpp's; None without it."""
    out_ratio: float | None


def local(read: Checkpoint, dtype: torch.dtype) -> Measure:
    """A measure of `local:` in *dtype*."""
    model = read.model if read.model.dtype == dtype else copy.deepcopy(read.model).to(dtype)
    generator = Generator(model, read.tokenizer, frozenset())  # no token ends the answer

    def measure(prompt: Sequence[int], out: int) -> tuple[float, float]:
        generator.prefixes = PrefixCache(model)
        began = time.perf_counter()
        generator.run([_job(prompt, 1)])
        prompt_s = time.perf_counter() - began
        began = time.perf_counter()
        generator.run([_job(prompt, out)])
        return prompt_s, time.perf_counter() - began

    return measure


def _job(prompt: Sequence[int], tokens: int) -> Job:
    return Job(tuple(prompt), tokens, 0.0, None, (), time.monotonic() + 3600)


@contextmanager
def llama(python: Path, file: Path, threads: int, context: int) -> Generates[Measure]:
    command = [str(python), str(WORKER), str(file), "--threads", str(threads), "--context", str(context)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()

        def measure(prompt: Sequence[int], out: int) -> tuple[float, float]:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"prompt": list(prompt), "out": out}) + "\n")
            process.stdin.flush()
            seconds = json.loads(process.stdout.readline())
            return seconds["prompt_s"], seconds["out_s"]

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
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in runtimes}
    names = list(runtimes)
    for turn, prompt in enumerate(asked):
        place = turn % len(names)
        for name in names[place:] + names[:place]:
            prompt_s, out_s = runtimes[name](prompt, out)
            print(f"{turn} {name}: prompt {prompt_s:.2f} s, answer {out_s:.2f} s", file=sys.stderr, flush=True)
            if turn:
                rates[name].append((len(prompt) / prompt_s, out / out_s))
    medians = {
        name: tuple(statistics.median(column) for column in zip(*rows, strict=True)) for name, rows in rates.items()
    }
    base = medians.get(LLAMA)
    return [
        Speed(
            name,
            round(rate[0], 1),
            round(rate[1], 1),
            None if base is None else round(rate[0] / base[0], 2),
            None if base is None else round(rate[1] / base[1], 2),
        )
        for name, rate in medians.items()
    ]


def table(speeds: Sequence[Speed]) -> str:
    lines = [
        "| runtime | tokens in a second | tokens out a second | in / llama.cpp | out / llama.cpp |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {s.runtime} | {s.tokens_in_per_s:g} | {s.tokens_out_per_s:g} | {s.in_ratio or ''} | {s.out_ratio or ''} |"
        for s in speeds
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="GGUF file")
    parser.add_argument("--llama-python", type=Path, help="Python of an environment with llama-cpp-python")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--rounds", type=int, default=5, help="measured prompts (%(default)s); one more warms up")
    parser.add_argument("--tokens-in", type=int, default=900)
    parser.add_argument("--tokens-out", type=int, default=32)
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "bfloat16"), default=("float32", "bfloat16"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    read = read_checkpoint(options.file, on_cpu=True)
    runtimes = {f"local: {name}": local(read, getattr(torch, name)) for name in options.dtypes}
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
