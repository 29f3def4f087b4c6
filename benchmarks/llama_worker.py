"""Runs llama.cpp for `benchmarks/local_speed.py`, in an environment that has llama-cpp-python and nothing of this
repository.

    PYTHON llama_worker.py FILE.gguf --threads N --context N

Reads one JSON object a line, `{"prompt": [token ids], "out": tokens to sample}`, and answers with the seconds, and the
CPU seconds, that the prompt and the sampled tokens took. The prompt is computed again each time, without a cache.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    options = parser.parse_args()
    package: Any = importlib.import_module("llama_cpp")
    model = package.Llama(
        options.file, n_ctx=options.context, n_threads=options.threads, n_threads_batch=options.threads, verbose=False
    )
    answer({"version": package.__version__})
    for line in sys.stdin:
        order = json.loads(line)
        answer(measure(model, order["prompt"], order["out"]))


def measure(model: Any, prompt: list[int], out: int) -> dict[str, float]:
    model.reset()
    wall, cpu = [time.perf_counter()], [time.process_time()]
    model.eval(prompt)
    token = model.sample(temp=0.0)
    wall.append(time.perf_counter())
    cpu.append(time.process_time())
    for _ in range(out):
        model.eval([token])
        token = model.sample(temp=0.0)
    wall.append(time.perf_counter())
    cpu.append(time.process_time())
    return {
        "in_s": wall[1] - wall[0],
        "out_s": wall[2] - wall[1],
        "in_cpu_s": cpu[1] - cpu[0],
        "out_cpu_s": cpu[2] - cpu[1],
    }


def answer(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
