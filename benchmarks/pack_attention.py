"""What a pack's length costs: scoring and its gradient over the same rows, with attention in trees and with a mask.

Both find the same log-probabilities; the benchmark stops where they do not. No two rows begin alike, because a mask
knows of no branches.

    OMP_NUM_THREADS=1 python -m benchmarks.pack_attention --rounds 3 --json
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from transformers import LlamaForCausalLM

from benchmarks.training_rows import cpu_seconds, interleaved, llama, medians, parser, report, rows_of
from training.data.packing import packed_sequences, sum_by_row
from training.data.rows import Row
from training.engine.annotate import completion_token_logprobs
from training.engine.tree_attention import IN_TREES

KINDS = {"in trees": IN_TREES, "mask": "sdpa"}


def pass_over(model: LlamaForCausalLM, rows: list[Row], pack_tokens: int) -> torch.Tensor:
    """Forward and backward over all rows; their log-probabilities, (N,)."""
    model.zero_grad()
    found: list[torch.Tensor] = []
    for packed in packed_sequences(rows, pack_tokens):
        logprobs = sum_by_row(completion_token_logprobs(model, packed), packed)
        logprobs.mean().backward()
        found.append(logprobs.detach())
    return torch.cat(found)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=48)
    options.add_argument("--packs", type=int, nargs="+", default=[512, 2_048, 8_192])
    given = options.parse_args()
    torch.set_num_threads(1)
    rows = [replace(row, prompt=(4 + number, *row.prompt[1:])) for number, row in enumerate(rows_of(given.rows, 1))]
    model = llama()
    found: dict[str, torch.Tensor] = {}

    def arm(name: str, kind: str, size: int) -> Callable[[], float]:
        def run() -> float:
            model.set_attn_implementation(kind)
            return cpu_seconds(lambda: found.update({name: pass_over(model, rows, size)}))

        return run

    arms = {
        f"{name}, {size}": arm(f"{name}, {size}", kind, size) for size in given.packs for name, kind in KINDS.items()
    }
    seconds = interleaved(arms, given.rounds)
    first = next(iter(found.values()))
    for other in found.values():
        torch.testing.assert_close(other, first, atol=1e-2, rtol=1e-4)
    middle, tokens = medians(seconds), sum(map(len, rows))
    report(
        given,
        {
            "rows": len(rows),
            "tokens": tokens,
            "tokens_per_cpu_second": {name: round(tokens / value) for name, value in middle.items()},
            "times_faster": {
                size: round(middle[f"mask, {size}"] / middle[f"in trees, {size}"], 2) for size in given.packs
            },
            "rounds": {name: [round(value, 2) for value in values] for name, values in seconds.items()},
        },
    )


if __name__ == "__main__":
    main()
