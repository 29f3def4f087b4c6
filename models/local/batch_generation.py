"""Generates tokens for a batch of prompts of different lengths, each row with its own settings.

It replaces `generate()`, because each row has its own deadline, and because for small models most of `generate()`'s
time is overhead. Rows are independent: a prompt gives the same answer alone and in any batch (up to float32 rounding),
because padding is masked and every row has its own random generator.

A row with a grammar samples from the tokens that the grammar allows next. Its logprobs are those of the distribution
without the grammar, which is the one that training changes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from models.local.continuation import Job, Row
from models.local.grammar_masks import GrammarCompiler, GrammarError, GrammarState


class Generator:
    """A causal model and its tokenizer, used from one thread at a time."""

    def __init__(self, model: Any, tokenizer: Any, ends: frozenset[int]) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.ends = ends
        pad = tokenizer.pad_token_id
        self._pad: int = pad if pad is not None else next(iter(ends), 0)
        self._compiler: GrammarCompiler | None = None

    @torch.inference_mode()
    def run(self, jobs: Sequence[Job]) -> list[Row]:
        """Generates until every job has ended; returns rows in the order of *jobs*."""
        rows = [Row(job) for job in jobs]
        draws = [_generator(job) for job in jobs]
        grammars = [self._grammar(row) for row in rows]
        ids, mask = self._padded(jobs)
        cache: dict[str, Any] = {}
        while any(row.finish is None for row in rows):
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            out = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=1,
                **cache,
            )
            cache = _cache_of(out)
            logits: Tensor = out.logits[:, -1].float()  # [B, V]
            chosen = [self._advance(row, logits[i], draws[i], grammars[i]) for i, row in enumerate(rows)]
            ids = torch.tensor(chosen, device=mask.device).unsqueeze(1)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
        return rows

    def _padded(self, jobs: Sequence[Job]) -> tuple[Tensor, Tensor]:
        """(ids, attention_mask), both [B, L], padded on the left."""
        length = max(len(job.prompt) for job in jobs)
        ids = torch.full((len(jobs), length), self._pad)
        mask = torch.zeros((len(jobs), length), dtype=torch.long)
        for i, job in enumerate(jobs):
            ids[i, length - len(job.prompt) :] = torch.tensor(job.prompt)
            mask[i, length - len(job.prompt) :] = 1
        device = self.model.device
        return ids.to(device), mask.to(device)

    def _grammar(self, row: Row) -> GrammarState | None:
        if row.job.grammar is None:
            return None
        if self._compiler is None:
            vocabulary = self.model.config.get_text_config().vocab_size
            self._compiler = GrammarCompiler(self.tokenizer, vocabulary, self.ends)
        try:
            return self._compiler.start(row.job.grammar)
        except GrammarError as error:
            _refuse(row, error)
            return None

    def _advance(self, row: Row, logits: Tensor, draw: torch.Generator | None, grammar: GrammarState | None) -> int:
        """Picks and appends the row's next token; returns padding for a row that has ended."""
        if row.finish is not None:
            return self._pad
        if time.monotonic() > row.job.ends_at:
            row.finish = "deadline"
            return self._pad
        logprobs = torch.log_softmax(logits.double(), -1)
        try:
            limited = logprobs if grammar is None else _limited(logprobs, grammar)
            token = _pick(limited, row.job.temperature, draw)
            row.add(token, float(logprobs[token]), self.ends, self.tokenizer)
            if grammar is not None and row.finish is None:
                grammar.accept(token)
        except GrammarError as error:
            _refuse(row, error)
            return self._pad
        return token


def _refuse(row: Row, error: GrammarError) -> None:
    row.finish, row.text = "refused", str(error)


def _limited(logprobs: Tensor, grammar: GrammarState) -> Tensor:
    """*logprobs* with -inf for tokens that the grammar does not allow next."""
    return logprobs.masked_fill(~torch.from_numpy(grammar.allowed()).to(logprobs.device), float("-inf"))


def _cache_of(out: Any) -> dict[str, Any]:
    """The key-value cache under the name of the output field; transformers 5.24 calls it `cache`."""
    return {name: out[name] for name in out.keys() & {"cache", "past_key_values"}}


def _generator(job: Job) -> torch.Generator | None:
    if job.temperature <= 0:
        return None
    draw = torch.Generator()
    draw.manual_seed(job.seed) if job.seed is not None else draw.seed()
    return draw


def _pick(logprobs: Tensor, temperature: float, draw: torch.Generator | None) -> int:
    if draw is None:
        return int(logprobs.argmax())
    probabilities = torch.softmax(logprobs.cpu() / temperature, -1)
    return int(torch.multinomial(probabilities, 1, generator=draw))
