"""Generates tokens for a batch of prompts of different lengths, each row with its own settings.

It replaces `generate()`, because each row has its own deadline, and because for small models most of `generate()`'s
time is overhead. Rows are independent: a prompt gives the same answer alone and in any batch (up to float32 rounding),
because padding is masked and every row has its own random generator.

A prefix that prompts share, with each other or with earlier ones, is computed once
(:mod:`models.local.prefix_cache`).

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
from models.local.prefix_cache import PrefixCache, cache_argument, cache_of
from models.local.vision_prompts import VisionPrompts


class Generator:
    """A causal model and its tokenizer, used from one thread at a time."""

    prompts: VisionPrompts | None = None
    """Encodes the prompts of a model that sees."""

    def __init__(self, model: Any, tokenizer: Any, ends: frozenset[int]) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.ends = ends
        pad = tokenizer.pad_token_id
        self.pad: int = pad if pad is not None else next(iter(ends), 0)
        self.declared_answer: int | None = getattr(model.generation_config, "max_new_tokens", None)
        """Completion length in tokens that the checkpoint declares."""
        self._compiler: GrammarCompiler | None = None
        self._prefixes = PrefixCache(model)

    @torch.inference_mode()
    def run(self, jobs: Sequence[Job]) -> list[Row]:
        """Generates until every job has ended; returns rows in the order of *jobs*."""
        rows = [Row(job) for job in jobs]
        draws = [seeded_generator(job) for job in jobs]
        grammars = [self.grammar_state(row) for row in rows]
        known, cache = self._prefixes.start([job.prompt for job in jobs])
        ids, mask = self._padded(jobs, known)
        prefilled = False
        while any(row.finish is None for row in rows):
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            out = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=1,
                **cache_argument(self.model, cache),
            )
            cache = cache_of(out)
            if not prefilled and len(jobs) == 1:
                self._prefixes.keep(jobs[0].prompt, cache)
            prefilled = True
            logits: Tensor = out.logits[:, -1].float()  # [B, V]
            chosen = [self.advance(row, logits[i], draws[i], grammars[i]) for i, row in enumerate(rows)]
            ids = torch.tensor(chosen, device=mask.device).unsqueeze(1)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
        return rows

    def _padded(self, jobs: Sequence[Job], known: int) -> tuple[Tensor, Tensor]:
        """(ids, attention_mask): [B, L] tokens after the first *known*, padded on the left, and [B, known + L]."""
        length = max(len(job.prompt) for job in jobs) - known
        ids = torch.full((len(jobs), length), self.pad)
        mask = torch.zeros((len(jobs), known + length), dtype=torch.long)
        mask[:, :known] = 1
        for i, job in enumerate(jobs):
            rest = job.prompt[known:]
            ids[i, length - len(rest) :] = torch.tensor(rest)
            mask[i, known + length - len(rest) :] = 1
        device = self.model.device
        return ids.to(device), mask.to(device)

    def grammar_state(self, row: Row) -> GrammarState | None:
        """A matcher for the row's grammar, if it has one; refuses a row whose grammar is invalid."""
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

    def advance(self, row: Row, logits: Tensor, draw: torch.Generator | None, grammar: GrammarState | None) -> int:
        """Picks and appends the row's next token; returns padding for a row that has ended."""
        if row.finish is not None:
            return self.pad
        if time.monotonic() > row.job.ends_at:
            row.finish = "deadline"
            return self.pad
        logprobs = torch.log_softmax(logits.double(), -1)
        try:
            limited = logprobs if grammar is None else _limited(logprobs, grammar)
            token = _pick(limited, row.job.temperature, draw)
            row.add(token, float(logprobs[token]), self.ends, self.tokenizer)
            if grammar is not None and row.finish is None:
                grammar.accept(token)
        except GrammarError as error:
            _refuse(row, error)
            return self.pad
        return token


def _refuse(row: Row, error: GrammarError) -> None:
    row.finish, row.text = "refused", str(error)


def _limited(logprobs: Tensor, grammar: GrammarState) -> Tensor:
    """*logprobs* with -inf for tokens that the grammar does not allow next."""
    return logprobs.masked_fill(~torch.from_numpy(grammar.allowed()).to(logprobs.device), float("-inf"))


def seeded_generator(job: Job) -> torch.Generator | None:
    """Random numbers for one job; None for greedy decoding."""
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
