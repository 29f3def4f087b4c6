"""Evaluates a policy on examples: greedy answers, scored by correctness and proximity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import torch

from envs.core.record import Record
from judges.statistics import Estimate, proportion
from models.local.vision_prompts import VisionPrompts
from models.prompting.prompt_tokens import PromptTokens
from models.vision.answers import OPEN
from training.engine.checkpoints import neutral_sampling
from training.engine.progress import Watcher, unwatched
from training.grpo.examples import Example, messages_of
from training.grpo.frames import AnswerFrames
from training.grpo.rewards import extract_thought, is_right, proximity_score, read_completion
from training.grpo.rewards.ssl import NEAR_MISS
from training.grpo.settings import GrpoSettings


class Evaluation(Record):
    """Metrics of greedy answers to examples."""

    examples: int
    correct: Estimate
    """Share of correct answers, with Wilson's interval."""
    proximity: float
    """Mean S of the SSL paper, untiered, 0 to 1."""
    near_misses: float
    """Share of answers that are wrong and have S above `NEAR_MISS`."""
    answer_tokens: float
    """Mean tokens of a completion, thought included."""
    thought_tokens: float
    """Mean tokens outside of the answer, in tags or not."""
    solved: tuple[str, ...]
    """Names of the examples that were answered correctly."""


def measure(
    model: Any, processor: Any, examples: Sequence[Example], settings: GrpoSettings, watch: Watcher = unwatched
) -> Evaluation:
    """Answers every example once at temperature 0 and scores the answers."""
    answers: list[str] = []
    opening = template_opening(processor)
    lengths: list[int] = []
    for texts, tokens in _answers(model, processor, examples, settings):
        answers += [opening + text for text in texts]
        lengths += tokens
        watch("measuring", len(answers), len(examples), None)
    frames = AnswerFrames(processor, settings.coordinates)
    completions = [
        read_completion(text, frames.scale(example)) for text, example in zip(answers, examples, strict=True)
    ]
    tokens = PromptTokens(tokenizer_of(processor))
    thoughts = [
        extract_thought(example.target, completion) for example, completion in zip(examples, completions, strict=True)
    ]
    right = [is_right(example.target, completion) for example, completion in zip(examples, completions, strict=True)]
    near = [
        proximity_score(example.target, completion) for example, completion in zip(examples, completions, strict=True)
    ]
    missed = [not correct and close > NEAR_MISS for correct, close in zip(right, near, strict=True)]
    return Evaluation(
        examples=len(examples),
        correct=proportion(sum(right), len(right)),
        proximity=fmean(near),
        near_misses=math.fsum(missed) / len(missed),
        answer_tokens=fmean(lengths),
        thought_tokens=fmean(len(tokens.plain(text)) if text else 0 for text in thoughts),
        solved=tuple(example.name for example, correct in zip(examples, right, strict=True) if correct),
    )


def tokenizer_of(processor: Any) -> Any:
    """Returns the tokenizer of an image processor, or *processor* if it is a tokenizer."""
    return getattr(processor, "tokenizer", processor)


def template_opening(processor: Any) -> str:
    """Returns the text that the chat template writes at the start of an answer: `<think>` if it opens a thought, as
    templates of reasoning models do, otherwise nothing. Completions are parsed with it in front."""
    tokenizer = tokenizer_of(processor)
    if getattr(processor, "chat_template", None) is not None and processor is not tokenizer:
        turn = {"role": "user", "content": [{"type": "text", "text": "?"}]}
        prompt: str = processor.apply_chat_template([turn], add_generation_prompt=True, tokenize=False)
    elif tokenizer.chat_template is not None:
        turn = {"role": "user", "content": "?"}
        prompt = tokenizer.apply_chat_template([turn], add_generation_prompt=True, tokenize=False)
    else:
        return ""
    return OPEN if prompt.rstrip().endswith(OPEN) else ""


@torch.no_grad()
def _answers(
    model: Any, processor: Any, examples: Sequence[Example], settings: GrpoSettings
) -> Iterator[tuple[list[str], list[int]]]:
    """Yields (texts, lengths in tokens) for batches of *examples*, in order."""
    tokenizer = tokenizer_of(processor)
    declared = model.generation_config.eos_token_id
    ends = sorted({tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])} - {None})
    neutral_sampling(model)
    was_training = model.training
    model.eval()
    for start in range(0, len(examples), settings.micro_rows):
        inputs = encode_prompts(processor, examples[start : start + settings.micro_rows], settings.room).to(
            model.device
        )
        generated = model.generate(
            **inputs,
            do_sample=False,
            max_new_tokens=settings.answer_tokens,
            pad_token_id=_pad(tokenizer),
            eos_token_id=ends,
        )[:, inputs["input_ids"].shape[1] :]
        ended = torch.isin(generated, torch.tensor(ends, device=generated.device)).cumsum(1) > 0
        yield tokenizer.batch_decode(generated, skip_special_tokens=True), (~ended).sum(1).tolist()
    model.train(was_training)


def encode_prompts(processor: Any, examples: Sequence[Example], room: int) -> Any:
    """Encodes prompts for the model, with images, padded on the left."""
    from transformers import BatchEncoding

    tokenizer = tokenizer_of(processor)
    if examples[0].image is not None:
        return _with_images(processor, examples)
    prompts = PromptTokens(tokenizer)
    ids = [prompts.encode(messages_of(example), room) for example in examples]
    longest = max(map(len, ids))
    padded = torch.tensor([[_pad(tokenizer)] * (longest - len(row)) + list(row) for row in ids])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in ids])
    return BatchEncoding({"input_ids": padded, "attention_mask": mask})


def too_long_prompts(processor: Any, examples: Sequence[Example], limits: Sequence[int]) -> list[tuple[Example, int]]:
    """The *examples* with an image whose prompts have more tokens than their limits, and the tokens, most first."""
    lengths = [
        encode_prompts(processor, [one], limit)["input_ids"].shape[1]
        for one, limit in zip(examples, limits, strict=True)
    ]
    over = [(one, length) for one, length, limit in zip(examples, lengths, limits, strict=True) if length > limit]
    return sorted(over, key=lambda pair: -pair[1])


def chat_turns(processor: Any, example: Example) -> list[dict[str, str]]:
    """Returns the messages of an example with an image in the chat template's format. Page text that looks like a
    special token, such as an image token, is broken up."""
    tokens = VisionPrompts(processor)
    messages = tokens.for_template(messages_of(example))
    return [{"role": message.role, "content": tokens.defused(message.text)} for message in messages]


def _with_images(processor: Any, examples: Sequence[Example]) -> Any:
    from PIL import Image
    from trl.data_utils import prepare_multimodal_messages

    turns = [chat_turns(processor, example) for example in examples]
    images = [[Image.open(example.image)] for example in examples if example.image is not None]
    conversations = [prepare_multimodal_messages(turn, images=image) for turn, image in zip(turns, images, strict=True)]
    return processor.apply_chat_template(
        conversations,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        processor_kwargs={"padding": True, "padding_side": "left"},
    )


def _pad(tokenizer: Any) -> int:
    return tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
