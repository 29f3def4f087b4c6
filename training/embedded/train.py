"""Trains on answers given prompts with a budget of CPU time. Resumable; reports are JSON lines.

Plain PyTorch in float32 on the CPU. The learning rate follows the share of the budget that is used up. Processor time
and not the clock's, so that a machine shared with other work learns as much, only later. Loss counts only on the
answer's tokens.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from envs.core.atomic_write import replacing
from training.embedded.circuit import imprint
from training.embedded.synthetic import Example
from training.embedded.tokenizer import ANSWER, BEGIN, END, PAD

POOL = 768
"""Examples drawn at once and sorted by length."""
ROPE_BASE = 1_000_000.0
"""High, so that most of a head's dimensions rotate slowly and compare contents over the entire prompt."""

Source = Callable[[random.Random, float], Example]
"""Draws one training example; the number is the share of the time budget that is used up (0 to 1)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The network's size; the defaults give a million parameters, 2 MB as float16."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    inner: int = 320
    context: int = 1_024

    @classmethod
    def of(cls, model: LlamaForCausalLM) -> Shape:
        c = model.config
        return cls(
            c.hidden_size, c.num_hidden_layers, c.num_attention_heads, c.intermediate_size, c.max_position_embeddings
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """One phase of training."""

    minutes: float
    """Budget of CPU minutes, over all threads."""
    learning_rate: float = 2e-3
    warmup: float = 0.03
    """Share of the budget in which the rate rises."""
    floor: float = 0.02
    """Final rate as a share of the highest."""
    batch_tokens: int = 2_048
    """Prompt and answer tokens of one optimizer step, padding included."""
    max_tokens: int = 1_000
    """Longer examples are excluded and counted."""
    short_until: float = 0.03
    """Share of the budget with only rows of at most `short_tokens`, in which copying is learned first."""
    short_tokens: int = 72
    weight_decay: float = 0.05
    clip: float = 1.0
    seed: int = 0
    report_s: float = 240.0
    save_s: float = 90.0


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a training run."""

    step: int
    scores: dict[str, float]
    """Mean loss per token and share of exact answers on each held-out set."""


@dataclass(frozen=True, slots=True)
class Row:
    """One example as tokens: the prompt, then the answer with its end token."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


def build_model(shape: Shape, tokenizer: PreTrainedTokenizerFast, seed: int = 0) -> LlamaForCausalLM:
    """A fresh network with tied embeddings; equal seeds give equal weights."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=shape.context,
        tie_word_embeddings=True,
        bos_token_id=token_id(tokenizer, BEGIN),
        eos_token_id=token_id(tokenizer, END),
        pad_token_id=token_id(tokenizer, PAD),
        initializer_range=0.02,
        attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        dtype="float32",
    )
    model = LlamaForCausalLM(config)
    imprint(model, seed)
    return model


@torch.no_grad()
def give_words(model: LlamaForCausalLM, old: PreTrainedTokenizerFast, new: PreTrainedTokenizerFast) -> None:
    """Adds embeddings to *model*, in place, for the tokens of *new* that *old* lacks: the mean of a word's old
    pieces."""
    added = range(len(old), len(new))
    words = new.convert_ids_to_tokens(list(added))
    model.resize_token_embeddings(len(new), mean_resizing=False)
    table = model.get_input_embeddings().weight
    assert isinstance(table, Tensor)
    for place, word in zip(added, words, strict=True):
        table[place] = table[old.encode(word, add_special_tokens=False)].mean(0)


def token_id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    """The id of one special token."""
    found = tokenizer.convert_tokens_to_ids(token)
    assert isinstance(found, int)
    return found


def encode(tokenizer: PreTrainedTokenizerFast, example: Example) -> Row:
    """Returns exactly the chat template's tokens; special tokens in page text stay text."""
    begin, answer, end = (token_id(tokenizer, token) for token in (BEGIN, ANSWER, END))
    prompt = tokenizer.encode(example.prompt, add_special_tokens=False, split_special_tokens=True)
    reply = tokenizer.encode(example.answer, add_special_tokens=False, split_special_tokens=True)
    return Row((begin, *prompt, answer), (*reply, end))


def batches(draw: Callable[[], Row], recipe: Recipe, limit: int, rng: random.Random) -> Iterator[list[Row]]:
    """Endless batches of rows of similar length, in random order; rows longer than *limit* are passed over."""
    while True:
        rows = [row for row in (draw() for _ in range(POOL)) if len(row) <= limit]
        cuts: list[list[Row]] = [[]]
        for row in sorted(rows, key=len):
            if (len(cuts[-1]) + 1) * len(row) > recipe.batch_tokens:
                cuts.append([])
            cuts[-1].append(row)
        rng.shuffle(cuts)
        yield from (cut for cut in cuts if cut)


def to_tensors(rows: Sequence[Row], pad: int) -> tuple[Tensor, Tensor]:
    """(ids, loss_mask), both [B, L], padded on the right; loss_mask is True where a token is predicted and counts."""
    length = max(map(len, rows))
    ids = torch.full((len(rows), length), pad)
    mask = torch.zeros((len(rows), length), dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row.prompt + row.answer)
        mask[i, len(row.prompt) : len(row)] = True
    return ids, mask


def answer_logits(model: LlamaForCausalLM, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """(logits [N, V], targets [N]) of the N masked tokens; the head runs on those positions only.

    Right padding under a causal mask is never seen by a real token, so no attention mask is passed.
    """
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state  # [B, L-1, D]
    return model.lm_head(hidden[mask[:, 1:]]), ids[:, 1:][mask[:, 1:]]


@torch.no_grad()
def measure(model: LlamaForCausalLM, rows: Sequence[Row], pad: int) -> dict[str, float]:
    """Returns the mean loss per token, and the share of rows with the arg-max at every token of the answer."""
    model.eval()
    loss, tokens, exact = 0.0, 0, 0
    for start in range(0, len(rows), 32):
        chunk = rows[start : start + 32]
        ids, mask = to_tensors(chunk, pad)
        logits, targets = answer_logits(model, ids, mask)
        loss += nn.functional.cross_entropy(logits, targets, reduction="sum").item()
        tokens += len(targets)
        right = (logits.argmax(-1) == targets).split([len(row.answer) for row in chunk])
        exact += sum(bool(part.all()) for part in right)
    model.train()
    return {"loss": loss / max(1, tokens), "exact": exact / max(1, len(rows))}


def rate_at(recipe: Recipe, used: float) -> float:
    """Factor on the learning rates when *used* (0 to 1) of the time is spent: linear rise, cosine fall to the floor."""
    if used < recipe.warmup:
        return max(used, 1e-3) / recipe.warmup
    along = min(1.0, (used - recipe.warmup) / (1.0 - recipe.warmup))
    return recipe.floor + (1 - recipe.floor) * 0.5 * (1 + math.cos(math.pi * along))


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; biases and norms are not decayed."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), eps=1e-8)


class Trainer:
    """One training run with a folder of its own: `log.jsonl` and `state.pt`, from which it resumes."""

    def __init__(
        self, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, source: Source, recipe: Recipe, out: Path
    ) -> None:
        self.model = model
        self.recipe = recipe
        self.step = 0
        self.spent_s = 0.0
        self._tokenizer = tokenizer
        self._source = source
        self._optimizer = make_optimizer(model, recipe)
        self._pad: int = token_id(tokenizer, PAD)
        self._out = out
        out.mkdir(parents=True, exist_ok=True)
        if (out / "state.pt").exists():
            self._resume()

    @property
    def used(self) -> float:
        """Share of the time budget that is used up, 0 to 1."""
        return min(1.0, self.spent_s / (self.recipe.minutes * 60))

    def run(self, checks: Mapping[str, Sequence[Example]]) -> Ended:
        """Trains until the budget is used up, with periodic reports on *checks*."""
        held_out = {name: [encode(self._tokenizer, example) for example in rows] for name, rows in checks.items()}
        started, reported, saved = time.process_time() - self.spent_s, self.spent_s, self.spent_s
        rng = random.Random(self.recipe.seed + self.step)
        short, stream = self._is_short, self._stream(rng)
        losses: list[float] = []
        tokens = 0
        self.model.train()
        while self.used < 1.0:
            if short != self._is_short:
                short, stream = self._is_short, self._stream(rng)
            ids, mask = to_tensors(next(stream), self._pad)
            losses.append(self._update(ids, mask))
            self.step, tokens, self.spent_s = self.step + 1, tokens + ids.numel(), time.process_time() - started
            if self.spent_s - reported >= self.recipe.report_s:
                self._report(sum(losses) / len(losses), tokens / (self.spent_s - reported), self._scores(held_out))
                losses, tokens, reported = [], 0, self.spent_s
            if self.spent_s - saved >= self.recipe.save_s:
                self._save()
                saved = self.spent_s
        self._save()
        return Ended(self.step, self._scores(held_out))

    @property
    def _is_short(self) -> bool:
        return self.used < self.recipe.short_until

    def _stream(self, rng: random.Random) -> Iterator[list[Row]]:
        limit = self.recipe.short_tokens if self._is_short else self.recipe.max_tokens
        return batches(lambda: encode(self._tokenizer, self._source(rng, self.used)), self.recipe, limit, rng)

    def _update(self, ids: Tensor, mask: Tensor) -> float:
        """One optimizer step on the batch (ids, loss_mask), both [B, L]; returns its loss."""
        for group in self._optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * rate_at(self.recipe, self.used)
        logits, targets = answer_logits(self.model, ids, mask)
        loss = nn.functional.cross_entropy(logits, targets)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self._optimizer.step()
        return loss.item()

    def _scores(self, held_out: Mapping[str, Sequence[Row]]) -> dict[str, float]:
        measured = {name: measure(self.model, rows, self._pad) for name, rows in held_out.items()}
        return {f"{name}_{what}": round(value, 4) for name, found in measured.items() for what, value in found.items()}

    def _report(self, loss: float, tokens_s: float, scores: Mapping[str, float]) -> None:
        progress = {"step": self.step, "minutes": round(self.spent_s / 60, 2), "loss": round(loss, 4)}
        line = json.dumps({**progress, "tokens_s": round(tokens_s), **scores})
        with (self._out / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)  # noqa: T201 - progress of a long command

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "step": self.step,
            "spent_s": self.spent_s,
        }
        with replacing(self._out / "state.pt") as part:
            torch.save(state, part)

    def _resume(self) -> None:
        state = torch.load(self._out / "state.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step, self.spent_s = int(state["step"]), float(state["spent_s"])
