"""Answers a minute of `local:` for several workers that ask at the same time: continuous batching beside whole batches.

    python -m benchmarks.local_clients CHECKPOINT [--workers 1 2 4 8] [--rounds 3] [--answers 6] [--pause 0.5] [--json]

Each worker asks for one answer after the other, with a pause between them as a browser's step has. Prompts share their
first 400 tokens, as the steps of episodes do; 400 more are their own. Answers have 20 to 60 tokens. `whole batches`
starts the next requests when all answers of a batch have ended. Both get requests of the same lengths, in turns, with
the weights loaded once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from models.base import ChatRequest, Message, ModelTruncated
from models.local.continuation import Arrivals, Row, TextGenerator
from models.local.loading import load_generator
from models.providers.local_chat import LocalModel

LINE: Final = 'button "Entry {number} of the catalogue"\n'
SHARED_TOKENS: Final = 400
OWN_TOKENS: Final = 400
ANSWER_TOKENS: Final = (20, 60)
PAGES: Final = 1_000_000
MODES: Final = ("whole batches", "continuous")


class WholeBatches(TextGenerator):
    """Takes jobs only when the batch before has ended."""

    def __init__(self, generator: TextGenerator) -> None:
        self.tokenizer = generator.tokenizer
        self._generator = generator

    def serve(self, arrivals: Arrivals) -> Iterator[Row]:
        while jobs := arrivals(0):
            yield from self._generator.run(jobs)


class Clients:
    """Workers that ask one model."""

    def __init__(self, model: LocalModel, tokenizer: Any, pause: float) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._pause = pause

    async def rate(self, workers: int, answers: int, turn: int, first_page: int) -> float:
        """Answers a minute. *turn* decides pauses, pages and lengths; pages are numbered from *first_page*, as those of
        another mode would be in the prefix cache."""
        began = time.perf_counter()
        await asyncio.gather(*(self._ask(worker, answers, turn, first_page) for worker in range(workers)))
        return 60 * workers * answers / (time.perf_counter() - began)

    async def _ask(self, worker: int, answers: int, turn: int, first_page: int) -> None:
        draw = random.Random(1000 * turn + worker)
        for _ in range(answers):
            await asyncio.sleep(self._pause * draw.uniform(0.5, 1.5))
            page = self._text(first_page + draw.randrange(PAGES), OWN_TOKENS)
            messages = (Message("system", self._text(0, SHARED_TOKENS)), Message("user", page))
            with suppress(ModelTruncated):  # no token ends an answer
                await self._model.complete(ChatRequest(messages, max_tokens=draw.randint(*ANSWER_TOKENS), stop=()))

    def _text(self, first: int, tokens: int) -> str:
        line = LINE.format(number=first)
        length = len(self._tokenizer.encode(line))
        return "".join(LINE.format(number=first + n) for n in range(tokens // length))


async def measure(options: argparse.Namespace) -> dict[str, dict[int, list[float]]]:
    """Rates by mode and number of workers, one a round."""
    generator, context = load_generator(options.checkpoint, None, f"local:{options.checkpoint}")
    generator.ends = frozenset()
    models = {
        mode: LocalModel(served, context, mode)
        for mode, served in zip(MODES, (WholeBatches(generator), generator), strict=True)
    }
    rates: dict[str, dict[int, list[float]]] = {mode: {workers: [] for workers in options.workers} for mode in MODES}
    for turn in range(options.rounds):
        for workers in options.workers:
            for mode in MODES if turn % 2 else reversed(MODES):
                clients = Clients(models[mode], generator.tokenizer, options.pause)
                first_page = PAGES * (1 + MODES.index(mode))
                rates[mode][workers].append(await clients.rate(workers, options.answers, turn, first_page))
                print(f"round {turn + 1}, {workers} workers, {mode}: {rates[mode][workers][-1]:.1f}", file=sys.stderr)
    for model in models.values():
        await model.aclose()
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answers", type=int, default=6, help="of each worker in a round (%(default)s)")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between answers (%(default)s)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rates = asyncio.run(measure(options))
    if options.json:
        print(json.dumps(rates))
        return
    print("| workers | whole batches: answers a minute | continuous | ratio |\n|---|---|---|---|")
    for workers in options.workers:
        whole, continuous = (statistics.median(rates[mode][workers]) for mode in MODES)
        print(f"| {workers} | {whole:.1f} | {continuous:.1f} | {continuous / whole:.2f} |")


if __name__ == "__main__":
    main()
