"""Supervised fine-tuning on examples: GuirlVG's baseline (App. A.1), AdaGUI-R1's first stage (§3.3).

A row is the prompt as GRPO and play send it, and the example's correct answer, after its thought if it has one. The
loss is the mean over the tokens of the answers of a step. Rows with an image are processed one by one, without padding,
so that no architecture's padding can change them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from models.local.loading import declared_context, reading_old_names
from models.prompting.prompt_tokens import PromptTokens
from models.vision.grounding import AnswerShape
from training.data.rows import Row, fitted_prompt, room_at_play
from training.engine.checkpoints import (
    declare_adapter,
    lora_config,
    save_adapter,
    select_device,
    weights_digest,
)
from training.engine.half_weights import copy_trained_weights, hold_frozen_in_bfloat16, is_held_in_bfloat16
from training.engine.language_model import hidden_width
from training.engine.learning_rate_check import UpdateBound, rate_problem
from training.engine.padded_sft import IGNORED
from training.engine.progress import ReportSteps, Watcher, unwatched
from training.engine.sft import SupervisedJob, supervised
from training.engine.trackers import check_trackers
from training.engine.trainer import SaveByTheClock, StopOnNonfinite, one_device, shared_arguments, train_on
from training.grpo.completion_length import asked_shape, right_answer
from training.grpo.declarations import Training, declare_training
from training.grpo.evaluation import encode_prompts, template_opening, tokenizer_of, too_long_prompts
from training.grpo.examples import Example, check_images, examples_digest, messages_of, share_of
from training.grpo.frames import AnswerFrames, limit_pixels
from training.grpo.imitation_settings import ImitationSettings
from training.grpo.prompts import ask_as
from training.grpo.rewards import Scale
from training.grpo.run import load_start, save_start
from training.grpo.trainer import freeze_vision
from training.loop.parts import check_folder, owning
from training.starts import start_folder


class ImitationInputs(Record):
    """The inputs of a run. A folder only continues with equal inputs."""

    start: str
    examples: str
    settings: ImitationSettings


class Imitated(Record):
    """The result of a fine-tuning on examples."""

    model: Path
    examples: int
    thoughts: int
    """Answers with a thought that is not empty."""
    tokens: int
    """Tokens of all answers."""
    cut: int
    """Prompts that lost their middle."""
    first_loss: float | None
    """Mean over answer tokens, in nats; None if nothing was trained."""
    last_loss: float | None


def answer_to_imitate(example: Example, shape: AnswerShape, scale: Scale) -> str:
    """The example's correct answer in the *shape* that its prompt asks for, after its thought in tags if it has one."""
    answer = right_answer(example.target, scale, shape)
    return answer if example.thought is None else f"<think>{example.thought}</think>\n{answer}"


def imitate(
    examples: Sequence[Example],
    start: str,
    out: Path,
    settings: ImitationSettings,
    *,
    log: Callable[[str], None],
    watch: Watcher = unwatched,
) -> Imitated:
    """Trains *start* on the answers of *examples*; a killed run continues with the same arguments. Raises BadInput."""
    check_folder(out, "imitation.json", "fine-tuning on examples")
    check_trackers(settings.report_to)
    examples = share_of(examples, settings.share, settings.seed)
    check_images(examples)
    policy = start_folder(start)
    vision = examples[0].image is not None
    model, processor = load_start(policy, vision=vision)
    limit_pixels(processor, settings.min_pixels, settings.max_pixels)
    examples, left = ask_as(examples, settings.prompt, AnswerFrames(processor, settings.coordinates).size)
    if left:
        log(f"warning: {left} of {len(examples)} questions are in words of their own and stay as they are")
    updates, lora = settings.count_updates(len(examples)), settings.compute.lora
    bound = UpdateBound("optimization", settings.optimization, updates, hidden_width(model.config), lora)
    if not (out / "model").exists() and (problem := rate_problem(bound)):
        log(f"warning: {problem}")
    inputs = ImitationInputs(
        start=weights_digest(policy), examples=examples_digest(examples, thoughts=True), settings=settings
    )
    answers = _Answers(processor, settings)
    rows = [answers.tokens(example) for example in examples]
    if vision and not (out / "model").exists():
        _check_lengths(processor, examples, rows, settings.compute.max_tokens)
    with owning(out / "imitation.json", inputs, "a fine-tuning"):
        cut = 0
        if not (out / "model").exists() and vision:
            _train_vision(model, processor, examples, rows, start=policy, out=out, settings=settings, watch=watch)
        elif not vision:
            config = model.config
            del model
            cut = _train_text(
                processor, examples, rows, policy=policy, out=out, settings=settings, watch=watch, config=config
            )
        losses = [row["loss"] for row in json.loads((out / "log.json").read_text(encoding="utf-8")) if "loss" in row]
        return Imitated(
            model=out / "model",
            examples=len(examples),
            thoughts=sum(bool(example.thought) for example in examples),
            tokens=sum(map(len, rows)),
            cut=cut,
            first_loss=losses[0] if losses else None,
            last_loss=losses[-1] if losses else None,
        )


def _check_lengths(
    processor: Any, examples: Sequence[Example], answers: Sequence[tuple[int, ...]], max_tokens: int
) -> None:
    """Raises BadInput if a prompt with its image and its answer is longer than *max_tokens*: it is not cut."""
    if too_long := too_long_prompts(processor, examples, [max_tokens - len(answer) for answer in answers]):
        example, length = too_long[0]
        raise BadInput(
            f"{len(too_long)} of {len(examples)} examples have with image and answer more tokens than "
            f"compute.max_tokens {max_tokens}; the prompt of {example.name!r} has {length}: raise "
            "compute.max_tokens, or lower max_pixels"
        )


class _Answers:
    """Encodes answers, with the end token. What the chat template opens itself is not written again."""

    def __init__(self, processor: Any, settings: ImitationSettings) -> None:
        self._tokens = PromptTokens(tokenizer_of(processor))
        self._end: int | None = tokenizer_of(processor).eos_token_id
        if self._end is None:
            raise BadInput("the tokenizer has no end-of-sequence token: answers would never end")
        self._frames = AnswerFrames(processor, settings.coordinates)
        self._prompt = settings.prompt
        self._opening = template_opening(processor)

    def tokens(self, example: Example) -> tuple[int, ...]:
        shape = asked_shape(example, self._prompt)
        text = answer_to_imitate(example, shape, self._frames.scale(example)).removeprefix(self._opening)
        assert self._end is not None
        return (*self._tokens.plain(text), self._end)


def text_rows(
    prompts: PromptTokens,
    examples: Sequence[Example],
    answers: Sequence[tuple[int, ...]],
    *,
    room: int,
    max_tokens: int,
) -> list[Row]:
    """A row for each example. Its prompt is cut as at play to *room* tokens, and further where the row would exceed
    *max_tokens*."""
    return [
        Row(fitted_prompt(prompts, messages_of(example), answer, max_tokens, room), answer, number, 0)
        for number, (example, answer) in enumerate(zip(examples, answers, strict=True))
    ]


def _train_text(
    tokenizer: Any,
    examples: Sequence[Example],
    answers: Sequence[tuple[int, ...]],
    *,
    policy: Path,
    out: Path,
    settings: ImitationSettings,
    watch: Watcher,
    config: Any,
) -> int:
    """Returns the number of prompts that lost their middle."""
    prompts = PromptTokens(tokenizer)
    max_tokens = min(settings.compute.max_tokens, declared_context(config, tokenizer))
    rows = text_rows(prompts, examples, answers, room=room_at_play(config, tokenizer), max_tokens=max_tokens)
    if too_long := sum(len(row) > settings.compute.max_tokens for row in rows):
        raise BadInput(f"{too_long} answers alone are longer than compute.max_tokens {settings.compute.max_tokens}")
    job = SupervisedJob(
        start=policy.resolve(),
        optimization=settings.optimization,
        compute=settings.compute,
        seed=settings.seed,
        steps=settings.steps,
        report_to=settings.report_to,
    )
    model = supervised(job, rows, out, watch=watch)
    declare_training(model, _training(examples, policy, settings))
    declare_adapter(model)
    return prompts.cut


def _train_vision(
    model: Any,
    processor: Any,
    examples: Sequence[Example],
    answers: Sequence[tuple[int, ...]],
    *,
    start: Path,
    out: Path,
    settings: ImitationSettings,
    watch: Watcher,
) -> None:
    from transformers import PrinterCallback

    device = select_device(settings.compute)
    torch.manual_seed(settings.seed)  # new adapters do not depend on what this process ran before
    model = _trainable(model.to(device), settings)
    trainer = _row_trainer()(
        model=hold_frozen_in_bfloat16(model, settings.compute),
        args=_arguments(out / "checkpoints", len(examples), settings),
        train_dataset=_Rows(examples, answers),
        data_collator=_Encoder(processor, settings.compute.max_tokens),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(SaveByTheClock(settings.compute.save_minutes))
    trainer.add_callback(StopOnNonfinite())
    trainer.add_callback(ReportSteps("fine-tuning", watch))
    train_on(trainer, out / "checkpoints")
    write_atomically(out / "log.json", json.dumps(trainer.state.log_history, indent=1) + "\n")
    learned = trainer.accelerator.unwrap_model(trainer.model)
    if is_held_in_bfloat16(learned):  # frozen weights are saved as they were, and adapters merged into those
        exact = _trainable(load_start(start, vision=True)[0], settings)
        copy_trained_weights(learned, exact)
        learned = exact
    save_adapter(learned, out / "model", start)
    save_start(
        learned,
        processor,
        out / "model",
        _training(examples, start, settings),
    )
    declare_adapter(out / "model")
    shutil.rmtree(out / "checkpoints", ignore_errors=True)


def _training(examples: Sequence[Example], start: Path, settings: ImitationSettings) -> Training:
    thinks = any(example.thought is not None for example in examples)
    return Training(
        examples,
        start,
        settings.coordinates,
        bf16=settings.compute.bf16,
        thoughts="tags" if thinks else None,
        prompt=settings.prompt,
    )


def _trainable(model: Any, settings: ImitationSettings) -> Any:
    """*model* with the weights frozen that are not trained, and with new adapters if the run has adapters."""
    from peft import get_peft_model

    if settings.freeze_vision:
        freeze_vision(model)
    if settings.compute.lora is None:
        return model
    with reading_old_names():
        return get_peft_model(model, lora_config(settings.compute.lora, model, freeze_vision=settings.freeze_vision))


def _arguments(out: Path, examples: int, settings: ImitationSettings) -> Any:
    from transformers import TrainingArguments

    optimization = settings.optimization
    steps = settings.count_updates(examples)
    arguments = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=min(optimization.batch_rows, examples),
        num_train_epochs=optimization.epochs,
        max_steps=settings.steps or -1,
        optim="adamw_torch",
        remove_unused_columns=False,
        dataloader_num_workers=0,
        logging_steps=max(1, steps // 20),
        **shared_arguments(
            optimization, settings.compute, seed=settings.seed, steps=steps, report_to=settings.report_to
        ),
    )
    one_device(arguments)
    return arguments


class _Rows(torch.utils.data.Dataset[tuple[Example, tuple[int, ...]]]):
    """Examples with the tokens of their answers. Images are read when a row is used."""

    def __init__(self, examples: Sequence[Example], answers: Sequence[tuple[int, ...]]) -> None:
        self._rows = list(zip(examples, answers, strict=True))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Example, tuple[int, ...]]:
        return self._rows[index]


class _Encoder:
    """Encodes one row: the prompt with its image, and the answer, whose tokens alone have labels."""

    def __init__(self, processor: Any, max_tokens: int) -> None:
        self._processor = processor
        self._max_tokens = max_tokens

    def __call__(self, rows: list[tuple[Example, tuple[int, ...]]]) -> dict[str, Any]:
        ((example, answer),) = rows
        inputs = dict(encode_prompts(self._processor, [example], self._max_tokens))
        prompt = inputs["input_ids"].shape[1]
        completion = torch.tensor([answer])
        for name, values in list(inputs.items()):
            if name == "input_ids":
                inputs[name] = torch.cat([values, completion], 1)
            elif name == "attention_mask":
                inputs[name] = torch.cat([values, torch.ones_like(completion)], 1)
            elif values.ndim == 2 and values.shape == (1, prompt):  # marks of image tokens
                inputs[name] = torch.cat([values, torch.zeros_like(completion, dtype=values.dtype)], 1)
        inputs["labels"] = torch.cat([torch.full((1, prompt), IGNORED), completion], 1)
        return inputs


def _row_trainer() -> Any:
    """A trainer whose loss is the mean over all answer tokens of a step."""
    from transformers import Trainer

    class RowTrainer(Trainer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.model_accepts_loss_kwargs = True  # the number of a step's answer tokens is passed to compute_loss

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            labels = inputs["labels"][:, 1:]
            rest = {name: value for name, value in inputs.items() if name != "labels"}
            logits = model(**rest, use_cache=False).logits[:, :-1]
            counted = labels != IGNORED
            total = torch.nn.functional.cross_entropy(logits[counted].float(), labels[counted], reduction="sum")
            loss = total / (counted.sum() if num_items_in_batch is None else num_items_in_batch)
            return (loss, {}) if return_outputs else loss

    return RowTrainer
