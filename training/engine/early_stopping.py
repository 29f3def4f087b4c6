"""Early stopping: scores held-out rows after every epoch, keeps the weights of the best one, and ends training when the
loss no longer falls. The start is scored, too, but never kept: whoever trained has it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from accelerate.utils import DistributedType
from safetensors.torch import load_file, save_file
from torch import Tensor, distributed, nn
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from envs.core.atomic_write import replacing, write_atomically
from envs.core.record import Record
from training.data.rows import Row
from training.engine.annotate import teacher_forced_answers
from training.engine.progress import Watcher, unwatched
from training.engine.settings import Compute

HISTORY: Final = "validation.json"
BEST: Final = "best.safetensors"


class ValidationScore(Record):
    """Scores of the validation rows after *step* optimizer steps."""

    step: int
    """0 is the start."""
    loss: float
    """Mean over completion tokens, in nats."""
    exact: float
    """Share of the rows whose completion is the greedy answer, token by token."""


def best_score(scores: Sequence[ValidationScore]) -> ValidationScore:
    """The score with the lowest loss, of equal ones the first. Raises ValueError without scores."""
    return min(scores, key=lambda score: score.loss)


def best_epoch(scores: Sequence[ValidationScore]) -> ValidationScore:
    """The best score behind the start, whose weights are kept. Raises ValueError if nothing was trained."""
    return best_score([score for score in scores if score.step])


def read_scores(folder: Path) -> tuple[ValidationScore, ...]:
    """The scores that :class:`EarlyStopping` wrote to *folder* so far."""
    try:
        values: list[Any] = json.loads((folder / HISTORY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    return tuple(map(ValidationScore.model_validate, values))


def is_exhausted(scores: Sequence[ValidationScore], patience: int) -> bool:
    """Whether the last *patience* scores are no better than the best one before them."""
    return len(scores) - 1 - scores.index(best_score(scores)) >= patience


def validation_score(
    model: nn.Module, rows: Sequence[Row], compute: Compute, step: int, watch: Watcher = unwatched
) -> ValidationScore:
    """Scores *rows* with *model* as it is, without dropout."""
    training = model.training
    model.eval()
    answers = teacher_forced_answers(model, rows, compute.pack_tokens, watch, bf16=compute.bf16)
    model.train(training)
    tokens = sum(len(row.completion) for row in rows)
    return ValidationScore(
        step=step,
        loss=-sum(answer.logprob for answer in answers) / tokens,
        exact=sum(answer.exact for answer in answers) / len(rows),
    )


class EarlyStopping(TrainerCallback):
    """Scores *rows* before the first step and after every *every* steps, in all processes. The scores are written to
    *folder*, and the weights of the best step beside them. Training ends after *patience* scores without improvement.
    *watch* gets the rows that the first process has scored."""

    def __init__(
        self,
        trainer: Trainer,
        rows: Sequence[Row],
        folder: Path,
        *,
        every: int,
        patience: int,
        compute: Compute,
        watch: Watcher = unwatched,
    ) -> None:
        self._trainer = trainer
        self._rows = rows
        self._folder = folder
        self._every = every
        self._patience = patience
        self._compute = compute
        self._watch = watch

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        known = [score for score in read_scores(self._folder) if score.step <= state.global_step]
        if _of_first_process(not known):  # before the first process writes its score
            self._score(state, control, [])
        elif is_exhausted(known, self._patience):
            control.should_training_stop = True

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        if state.global_step % self._every == 0 or state.global_step == state.max_steps:
            known = [score for score in read_scores(self._folder) if score.step < state.global_step]
            self._score(state, control, known)
            control.should_save = True  # a resumed training continues behind this score

    def _score(self, state: TrainerState, control: TrainerControl, known: list[ValidationScore]) -> None:
        model: Any = self._trainer.model
        watch = self._watch if state.is_world_process_zero else unwatched
        score = validation_score(model, self._rows, self._compute, state.global_step, watch)
        scores = [*known, score]
        better = _of_first_process(score.step > 0 and best_epoch(scores) is score)
        weights = _trained_weights(self._trainer) if better else None
        if state.is_world_process_zero:
            self._folder.mkdir(parents=True, exist_ok=True)
            if weights is not None:
                with replacing(self._folder / BEST) as unfinished:
                    save_file(dict(weights), unfinished)
            text = json.dumps([each.model_dump() for each in scores], indent=1)
            write_atomically(self._folder / HISTORY, text + "\n", sync=False)
        if _of_first_process(is_exhausted(scores, self._patience)):
            control.should_training_stop = True


def load_best(model: nn.Module, folder: Path) -> None:
    """Loads the weights of the best epoch in *folder* into *model*."""
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, weight in load_file(folder / BEST).items():
            own[name].copy_(weight)


def _of_first_process(decision: bool) -> bool:
    """The first process's *decision*: processes may differ in the last digit of a loss."""
    shared = [decision]
    if distributed.is_available() and distributed.is_initialized():
        distributed.broadcast_object_list(shared, src=0)
    return shared[0]


def _trained_weights(trainer: Trainer) -> Mapping[str, Tensor] | None:
    """The weights that are trained, by name; None in processes that do not write. All processes must call this."""
    accelerator: Any = trainer.accelerator
    model: Any = accelerator.unwrap_model(trainer.model)
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    if accelerator.distributed_type == DistributedType.FSDP:
        weights = accelerator.get_state_dict(trainer.model)  # each process sends its part
    else:
        weights = dict(model.named_parameters())
    if not trainer.is_world_process_zero():
        return None
    return {name: weights[name].detach().cpu().contiguous() for name in names}
