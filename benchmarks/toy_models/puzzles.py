"""Builds a small model for puzzles with one token per character and one per question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.toy_models.tokens import closed_tokenizer
from training.data.rows import Row
from training.engine.checkpoints import save_policy
from training.grpo.evaluation import tokenizer_of
from training.grpo.examples import Example, messages_of
from training.grpo.puzzles import maze, pattern, sudoku
from training.grpo.rewards import GridTarget, MazeTarget, SudokuTarget

CHARACTERS = "0123456789#.SGUDLR>\n "
"""Characters with one token each. Each kind's question is one token too."""


def puzzle_tokenizer(*words: str) -> Any:
    """Builds a tokenizer with one token per character, one per question, and one for each of *words*."""
    from tokenizers import Regex

    known = [maze.ASK, sudoku.ASK, pattern.ASK, *words]
    return closed_tokenizer([*known, *CHARACTERS], Regex("|".join([*map(_escaped, known), "(?m:.)"])))


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "().,:#" else c for c in text)


def fresh_model(out: Path, *, width: int = 128, layers: int = 4, seed: int = 0, tokenizer: Any = None) -> Path:
    """Writes a randomly initialised Llama to *out*, with a context length of 512 tokens. Without a *tokenizer* it has
    that of :func:`puzzle_tokenizer`."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = puzzle_tokenizer() if tokenizer is None else tokenizer
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            intermediate_size=3 * width,
            num_hidden_layers=layers,
            num_attention_heads=max(1, width // 32),
            max_position_embeddings=512,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            tie_word_embeddings=True,
        )
    )
    save_policy(model, tokenizer, out)
    return out


def reference_answer(example: Example) -> str:
    """Returns a correct answer. Raises ValueError if the target is not a puzzle."""
    match example.target:
        case MazeTarget():
            return example.target.path
        case SudokuTarget():
            return "\n".join(example.target.solution)
        case GridTarget():
            return "\n".join(example.target.rows)
        case _:
            raise ValueError(f"a {example.target.kind} is no puzzle")


def reference_rows(
    examples: Sequence[Example], processor: Any, answer: Callable[[Example], str] = reference_answer
) -> list[Row]:
    """Converts puzzles and their correct answers to rows for supervised fine-tuning."""
    from models.prompting.prompt_tokens import PromptTokens

    tokenizer = tokenizer_of(processor)
    tokens = PromptTokens(tokenizer)
    rows: list[Row] = []
    for index, example in enumerate(examples):
        prompt = tokens.encode(messages_of(example), 1 << 20)
        action = (*tokens.plain(answer(example)), tokenizer.eos_token_id)
        rows.append(Row(prompt, action, index, 0))
    return rows
