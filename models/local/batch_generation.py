"""Generates tokens for a batch of prompts of different lengths, each row with its own settings.

It replaces `generate()`, because each row has its own deadline, and because for small models most of `generate()`'s
time is overhead. Rows are independent: a prompt gives the same answer alone and in any batch (up to float32 rounding),
because padding is masked and every row has its own random generator.

Batching is continuous: a job that arrives joins the rows in progress at their next token, and a row leaves the batch
when it ends. A prefix that prompts share, with each other or with earlier ones, is computed once
(:mod:`models.local.prefix_cache`): each prompt is computed from the longest prefix of any earlier one. Models whose
caches cannot be cut compute a batch of padded prompts instead, and jobs that arrive meanwhile wait for its last token.

A row with a grammar samples from the tokens that the grammar allows next. Its logprobs are those of the distribution
without the grammar, which is the one that training changes. Tokens that the grammar forces are not sampled: they are
computed in one pass with the token before them (jump-forward decoding).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final

import torch
from torch import Tensor

from models.local.continuation import Arrivals, Job, Row, TextGenerator
from models.local.cpu_kernels import compiles_by_shape, padding
from models.local.grammar_masks import GrammarCompiler, GrammarError, GrammarState, takes_grammars, thinks
from models.local.prefix_cache import PrefixCache, cache_argument, cache_of, layers_of, rows_of, side_by_side
from models.local.vision_prompts import VisionPrompts

PAD_PROMPTS_TO: Final = 16
"""On a CPU in bfloat16 the prompt tokens of a pass are padded to a multiple of this, see
:mod:`models.local.cpu_kernels`."""


class Generator(TextGenerator):
    """A causal model and its tokenizer, used from one thread at a time."""

    prompts: VisionPrompts | None = None
    """Encodes the prompts of a model that sees."""

    def __init__(self, model: Any, tokenizer: Any, ends: frozenset[int], *, vision_problem: str = "") -> None:
        """*vision_problem*: why a checkpoint with an image encoder is used for text alone."""
        self.vision_problem = vision_problem
        self.model = model
        self.tokenizer = tokenizer
        self.ends = ends
        self.pad = pad_token(model.config, tokenizer, ends)
        self.declared_answer: int | None = getattr(model.generation_config, "max_new_tokens", None)
        """Completion length in tokens that the checkpoint declares."""
        self._compiler: GrammarCompiler | None = None
        self.prefixes = PrefixCache(model)

    @torch.inference_mode()
    def serve(self, arrivals: Arrivals) -> Iterator[Row]:
        if self.prefixes.usable:
            yield from self._serve_joined(arrivals)
            return
        while jobs := arrivals(0):
            yield from self._whole_batch(jobs)

    def _serve_joined(self, arrivals: Arrivals) -> Iterator[Row]:
        """Continuous batching: a job joins the rows in progress at their next token, and a row leaves when it ends."""
        batch = Batch()
        while True:
            jobs = arrivals(len(batch.answers))
            if not jobs and not batch.answers:
                return
            joining: list[tuple[Answer, Tensor, Any]] = []
            for job in jobs:
                answer = self.started(job)
                if answer.row.finish is None:
                    joining.append((answer, *self._prompt(answer.row)))
                else:
                    yield answer.row
            batch.add(joining)
            chunks = [self._next_tokens(answer, logits) for answer, logits in batch.rows()]
            kept = [i for i, answer in enumerate(batch.answers) if answer.row.finish is None]
            yield from (answer.row for answer in batch.answers if answer.row.finish is not None)
            batch.keep(kept)
            if kept:
                self._decode(batch, [chunks[i] for i in kept])

    def _whole_batch(self, jobs: Sequence[Job]) -> Iterator[Row]:
        """Generates for all *jobs* together until the last one has ended."""
        answers = [self.started(job) for job in jobs]
        logits, cache, mask = self._padded_prompts([answer.row for answer in answers])
        batch = Batch(answers, list(logits), cache, mask)
        while True:
            chunks = [self._next_tokens(answer, logits) for answer, logits in batch.rows()]
            if all(answer.row.finish is not None for answer in answers):
                yield from (answer.row for answer in answers)
                return
            self._decode(batch, chunks)

    def started(self, job: Job) -> Answer:
        """An answer without tokens. It has ended already if its deadline has passed or its grammar is invalid."""
        row = Row(job)
        if job.over:
            row.finish = "deadline"
            return Answer(row, None, None)
        return Answer(row, seeded_generator(job), self.grammar_state(row))

    def _decode(self, batch: Batch, chunks: Sequence[Sequence[int]]) -> None:
        """Computes the next tokens of all rows of *batch*."""
        ids, own_mask = self._left_padded(chunks)
        mask = torch.cat([batch.mask, own_mask], dim=1)
        after, cache = self._forward(ids, mask, batch.cache, keep=ids.shape[1])
        for answer, chunk, own in zip(batch.answers, chunks, after, strict=True):
            self._add_forced(answer.row, chunk, own[-len(chunk) :])
        batch.logits, batch.cache, batch.mask = list(after[:, -1]), cache, mask

    def _next_tokens(self, answer: Answer, logits: Tensor) -> list[int]:
        """The answer's next token and the tokens that its grammar forces after it; of these only the first is appended
        to the row. A cache that cannot be cut takes no padding, so nothing is forced there."""
        row, grammar = answer.row, answer.grammar
        token = self.advance(answer, logits)
        if grammar is None or row.finish is not None or not self.prefixes.usable:
            return [token]
        try:
            return [token, *grammar.forced()]
        except GrammarError as error:
            _refuse(row, error)
            return [token]

    def _add_forced(self, row: Row, chunk: Sequence[int], after: Tensor) -> None:
        """Appends all but the first of the tokens *chunk*; *after*: [L, V] logits after each of them."""
        for token, logits in zip(chunk[1:], after, strict=False):
            if row.finish is not None:
                return
            row.add(token, float(torch.log_softmax(logits.double(), -1)[token]), self.ends, self.tokenizer)

    def _left_padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """(ids, mask): the tokens of *rows*, [B, L] each."""
        mask = self._mask([len(row) for row in rows])
        ids = torch.full(mask.shape, self.pad)
        for i, row in enumerate(rows):
            ids[i, -len(row) :] = torch.tensor(row)
        return ids.to(mask.device), mask

    def _forward(self, ids: Tensor, mask: Tensor, cache: Any, keep: int = 1) -> tuple[Tensor, Any]:
        """(logits, cache): [B, *keep*, V] logits after each of the last tokens of *ids* [B, L]. *mask* [B, T] covers
        the cache and *ids*."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        out = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=keep,
            **cache_argument(self.model, cache),
        )
        return out.logits[:, -keep:].float(), cache_of(out)

    def _prompt(self, row: Row) -> tuple[Tensor, Any]:
        """(logits, cache): [V] logits after the prompt of *row*, computed after the longest prefix that is known."""
        prompt = row.job.prompt
        row.cached, cache = self.prefixes.start(prompt)
        padded = self._padding(len(prompt) - row.cached)
        ids = torch.tensor([[*prompt[row.cached :], *[self.pad] * padded]], device=self.model.device)
        logits, cache = self._forward(ids, ids.new_ones(1, len(prompt) + padded), cache, keep=padded + 1)
        if padded:
            cache.crop(-padded)  # no token of the prompt attends to those after it
        self.prefixes.keep(prompt, cache)
        return logits[0, 0], cache

    def _padding(self, tokens: int) -> int:
        """How many tokens pad a pass of *tokens*, see :data:`PAD_PROMPTS_TO`. A single one is a pass of decoding."""
        pads = tokens > 1 and compiles_by_shape(self.model.device, self.model.dtype)
        return padding(tokens, PAD_PROMPTS_TO) if pads else 0

    def _mask(self, lengths: Sequence[int]) -> Tensor:
        """[B, L] ones where a row of one of the *lengths*, padded on the left, has tokens."""
        places = torch.arange(max(lengths), 0, -1)
        return (places <= torch.tensor(lengths).unsqueeze(1)).long().to(self.model.device)

    def _padded_prompts(self, rows: Sequence[Row]) -> tuple[Tensor, Any, Tensor]:
        """(logits, cache, mask) after the prompts, computed together."""
        prompts = [row.job.prompt for row in rows]
        ids, mask = self._left_padded(prompts)
        logits, cache = self._forward(ids, mask, None)
        return logits[:, -1], cache, mask

    def grammar_state(self, row: Row) -> GrammarState | None:
        """A matcher for the row's grammar, or for its JSON Schema; None without one, and for a tokenizer that takes
        none. Refuses a row whose grammar is invalid. A schema that cannot be used is not: the answer is checked."""
        grammar, schema = row.job.grammar, row.job.json_schema
        if grammar is not None and takes_grammars(self.tokenizer):
            try:
                return self._grammars().start(grammar)
            except GrammarError as error:
                _refuse(row, error)
        elif schema is not None and self._takes_schemas:
            with suppress(GrammarError):
                return self._grammars().start_json(schema)
        return None

    @cached_property
    def _takes_schemas(self) -> bool:
        """False for a model that thinks before it answers, and without the package."""
        able = takes_grammars(self.tokenizer) and find_spec("llguidance") is not None
        return able and not thinks(self.tokenizer)

    def _grammars(self) -> GrammarCompiler:
        if self._compiler is None:
            vocabulary = self.model.config.get_text_config().vocab_size
            self._compiler = GrammarCompiler(self.tokenizer, vocabulary, self.ends)
        return self._compiler

    def advance(self, answer: Answer, logits: Tensor) -> int:
        """Picks and appends the answer's next token; returns padding for one that has ended."""
        row, grammar = answer.row, answer.grammar
        if row.finish is not None:
            return self.pad
        if row.job.over:
            row.finish = "deadline"
            return self.pad
        logprobs = torch.log_softmax(logits.double(), -1)
        try:
            limited = logprobs if grammar is None else _limited(logprobs, grammar)
            token = _pick(limited, row.job.temperature, answer.draw)
            row.add(token, float(logprobs[token]), self.ends, self.tokenizer)
            if grammar is not None and row.finish is None:
                grammar.accept(token)
        except GrammarError as error:
            _refuse(row, error)
            return self.pad
        return token


@dataclass(slots=True)
class Answer:
    """A row in progress, with its random numbers and the state of its grammar."""

    row: Row
    draw: torch.Generator | None
    grammar: GrammarState | None


@dataclass(slots=True)
class Batch:
    """Rows that are decoded together."""

    answers: list[Answer] = field(default_factory=list[Answer])
    logits: list[Tensor] = field(default_factory=list[Tensor])
    """[V] of each row, after its last token."""
    cache: Any = None
    mask: Tensor = field(default_factory=lambda: torch.zeros(0, 0))
    """[B, T] ones where a row has a token in the cache."""

    def rows(self) -> Iterator[tuple[Answer, Tensor]]:
        """Each answer with its logits."""
        return zip(self.answers, self.logits, strict=True)

    def add(self, joining: Sequence[tuple[Answer, Tensor, Any]]) -> None:
        """Adds rows: the answer, the logits [V] after its prompt, and a cache that holds the prompt alone."""
        caches = [self.cache] * bool(self.answers) + [cache for _, _, cache in joining]
        masks = [self.mask] * bool(self.answers)
        for answer, logits, cache in joining:
            self.answers.append(answer)
            self.logits.append(logits)
            masks.append(torch.ones(1, cache.layers[0].keys.shape[2], dtype=torch.long, device=logits.device))
        if joining:
            longest = max(mask.shape[1] for mask in masks)
            self.mask = torch.cat([torch.nn.functional.pad(mask, (longest - mask.shape[1], 0)) for mask in masks])
            self.cache = caches[0] if len(caches) == 1 else side_by_side([layers_of(cache) for cache in caches])

    def keep(self, rows: Sequence[int]) -> None:
        """Removes all other rows, and the tokens that only they have."""
        if len(rows) == len(self.answers):
            return
        self.answers, self.logits = [self.answers[i] for i in rows], [self.logits[i] for i in rows]
        if rows:
            mask = self.mask[torch.tensor(rows, device=self.mask.device)]
            first = int(mask.any(dim=0).int().argmax())
            self.cache, self.mask = rows_of(self.cache, rows, first), mask[:, first:]


def pad_token(config: Any, tokenizer: Any, ends: frozenset[int]) -> int:
    """A token for masked positions: the tokenizer's, an end, or the first one. Some tokenizers have a pad token beyond
    the embeddings of their model."""
    pad, vocabulary = tokenizer.pad_token_id, config.get_text_config().vocab_size
    known = (token for token in (pad, *ends) if token is not None and token < vocabulary)
    return next(known, 0)


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
