"""What the training benchmarks share: a model from scratch, rows of the lengths that agents have, clocks."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from training.data.rows import Row


def llama(*, width: int = 256, layers: int = 4, vocab: int = 4_096, seed: int = 0) -> LlamaForCausalLM:
    """Random weights in float32; the default has 6.3 million, 4.2 of them in its layers."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=width // 64,
        max_position_embeddings=1_024,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config)


def rows_of(
    trajectories: int, steps: int, *, action: int = 24, vocab: int = 4_096, longest: int = 512, seed: int = 1
) -> list[Row]:
    """Prompts of log-normal length, about 170 tokens with their action in the mean and *longest* at most."""
    draw = torch.Generator().manual_seed(seed)
    found: list[Row] = []
    for trajectory in range(trajectories):
        for step in range(steps):
            length = float(torch.exp(4.75 + 0.7 * torch.randn((), generator=draw)))
            length = round(min(max(length, 16), longest - action))
            prompt = torch.randint(4, vocab, (length,), generator=draw).tolist()
            found.append(
                Row(tuple(prompt), tuple(torch.randint(4, vocab, (action,), generator=draw).tolist()), trajectory, step)
            )
    return found


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Of this process: other work on the machine disturbs them less than the wall's."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def interleaved(arms: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What every arm returned, one round after the other, every second one backwards."""
    found: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(rounds):
        for name in list(arms)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(arms[name]())
    return found


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in seconds.items()}


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument("--out", type=Path, help="also write the JSON object to this file")
    return made


def report(options: argparse.Namespace, found: dict[str, Any]) -> None:
    found |= {
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "load": [round(n, 1) for n in os.getloadavg()],
    }
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name}: {value}")
