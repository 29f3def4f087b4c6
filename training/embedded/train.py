"""The training loop: answers given prompts, by wall-clock budget, resumable, every report a line of JSON.

Plain PyTorch in float32 on the CPU. The learning rate follows the share of the time budget that is used up, so that a
shared or slow machine still ends on a decayed rate. Loss counts only on the answer's tokens.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from training.embedded.circuit import imprint
from training.embedded.muon import Muon
from training.embedded.synthetic import Example

CLOCK = time.monotonic
ROPE_BASE = 1_000_000.0
"""High, so that most of a head's dimensions turn slowly and compare contents over the whole prompt."""

Source = Callable[[random.Random], Example]
"""Draws one training example."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The network's size; the defaults give about 4 million parameters, 8 MB as float16."""

    width: int = 256
    layers: int = 5
    heads: int = 8
    inner: int = 640
    context: int = 1_024


@dataclass(frozen=True, slots=True)
class Recipe:
    """One phase of training."""

    minutes: float
    learning_rate: float = 1.5e-3
    warmup: float = 0.03
    """Share of the budget in which the rate rises."""
    floor: float = 0.02
    """Final rate as a share of the highest."""
    batch_tokens: int = 8_192
    """Prompt and answer tokens of one optimizer step, padding included."""
    max_tokens: int = 640
    """Longer examples are left out and counted."""
    short_until: float = 0.0
    """Share of the budget in which only rows of at most `short_tokens` are seen: copying is found on short ones first."""
    short_tokens: int = 72
    prompt_weight: float = 0.0
    """Weight of the loss on the prompt's own tokens beside the answer's; it makes the copying circuit form sooner."""
    matrix_rate: float = 0.0
    """Highest learning rate of Muon for the hidden matrices; 0 = AdamW for everything."""
    weight_decay: float = 0.05
    clip: float = 1.0
    seed: int = 0
    report_s: float = 20.0
    save_s: float = 120.0


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
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.02,
        attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        attn_implementation="sdpa",
        dtype="float32",
    )
    model = LlamaForCausalLM(config)
    imprint(model, seed)
    return model


def encode(tokenizer: PreTrainedTokenizerFast, example: Example) -> Row:
    """Exactly the tokens that the chat template gives; special tokens written in a page's text stay text."""
    begin, answer, end = tokenizer.convert_tokens_to_ids(["<|begin|>", "<|answer|>", "<|end|>"])
    prompt = tokenizer.encode(example.prompt, add_special_tokens=False, split_special_tokens=True)
    reply = tokenizer.encode(example.answer, add_special_tokens=False, split_special_tokens=True)
    return Row((begin, *prompt, answer), (*reply, end))


def batches(
    tokenizer: PreTrainedTokenizerFast,
    source: Source,
    recipe: Recipe,
    rng: random.Random,
    *,
    short: bool = False,
    pool: int = 768,
) -> Iterator[list[Row]]:
    """Endless batches of rows of similar length, in random order."""
    while True:
        rows = [encode(tokenizer, source(rng)) for _ in range(pool)]
        limit = recipe.short_tokens if short else recipe.max_tokens
        rows = sorted((row for row in rows if len(row) <= limit), key=len)
        cuts: list[list[Row]] = [[]]
        for row in rows:
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


def training_loss(model: LlamaForCausalLM, ids: Tensor, mask: Tensor, pad: int, prompt_weight: float) -> Tensor:
    """Mean cross-entropy of the answers' tokens, plus *prompt_weight* times that of the prompts' own."""
    if not prompt_weight:
        logits, targets = answer_logits(model, ids, mask)
        return nn.functional.cross_entropy(logits, targets)
    real = ids != pad
    logits, targets = answer_logits(model, ids, real)
    each = nn.functional.cross_entropy(logits, targets, reduction="none")
    answers = mask[:, 1:][real[:, 1:]]
    return each[answers].mean() + prompt_weight * each[~answers].mean()


@torch.no_grad()
def measure(model: LlamaForCausalLM, rows: Sequence[Row], pad: int) -> dict[str, float]:
    """Mean loss a token, and the share of rows whose whole answer is the arg-max at every token."""
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


def make_optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW, with Muon for the hidden matrices where the recipe asks for it; each group knows its highest rate."""
    hidden = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n and "lm_head" not in n]
    chosen = {id(p) for p in hidden} if recipe.matrix_rate else set[int]()
    rest = [p for p in model.parameters() if id(p) not in chosen]
    groups = [
        {"params": [p for p in rest if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0},
    ]
    made: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), eps=1e-8)
    ]
    if recipe.matrix_rate:
        made.append(Muon(hidden, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay))
    for optimizer in made:
        for group in optimizer.param_groups:
            group["highest"] = group["lr"]
    return made


def train(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    source: Source,
    checks: dict[str, Sequence[Example]],
    recipe: Recipe,
    out: Path,
) -> None:
    """Trains *model* in place for `recipe.minutes`; `out` gets `log.jsonl` and `state.pt`, from which it resumes."""
    out.mkdir(parents=True, exist_ok=True)
    pad = tokenizer.convert_tokens_to_ids("<|pad|>")
    held_out = {name: [encode(tokenizer, example) for example in examples] for name, examples in checks.items()}
    optimizers = make_optimizers(model, recipe)
    step, spent = _resume(model, optimizers, out / "state.pt")
    budget, last_report, last_save = recipe.minutes * 60, spent, spent
    short = spent < recipe.short_until * budget
    stream = batches(tokenizer, source, recipe, random.Random(recipe.seed + step), short=short)
    losses: list[float] = []
    tokens, started = 0, CLOCK() - spent
    model.train()
    while (spent := CLOCK() - started) < budget:
        if short and spent >= recipe.short_until * budget:
            short, stream = False, batches(tokenizer, source, recipe, random.Random(recipe.seed + step))
        ids, mask = to_tensors(next(stream), pad)
        rate = rate_at(recipe, spent / budget)
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = rate * group["highest"]
        loss = training_loss(model, ids, mask, pad, recipe.prompt_weight)
        model.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        for optimizer in optimizers:
            optimizer.step()
        step, tokens = step + 1, tokens + ids.numel()
        losses.append(loss.item())
        if spent - last_report >= recipe.report_s:
            scores = {name: measure(model, rows, pad) for name, rows in held_out.items()}
            _report(out, step=step, minutes=spent / 60, rate=rate, loss=_mean(losses),
                    tokens_s=tokens / (spent - last_report), **{f"{n}_{k}": v for n, s in scores.items() for k, v in s.items()})  # fmt: skip
            losses, tokens, last_report = [], 0, CLOCK() - started
        if spent - last_save >= recipe.save_s:
            _save(model, optimizers, step, spent, out / "state.pt")
            last_save = spent
    _save(model, optimizers, step, budget, out / "state.pt")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _report(out: Path, **values: float) -> None:
    line = json.dumps({name: round(value, 5) for name, value in values.items()})
    with (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line, flush=True)  # noqa: T201 - progress of a long command


def _save(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], step: int, spent: float, path: Path) -> None:
    state = {
        "model": model.state_dict(),
        "optimizers": [o.state_dict() for o in optimizers],
        "step": step,
        "spent": spent,
    }
    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    temporary.replace(path)


def _resume(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], path: Path) -> tuple[int, float]:
    if not path.exists():
        return 0, 0.0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    return int(state["step"]), float(state["spent"])


def describe(shape: Shape, recipe: Recipe) -> dict[str, object]:
    return {"shape": asdict(shape), "recipe": asdict(recipe)}
