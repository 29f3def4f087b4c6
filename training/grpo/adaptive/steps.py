"""Difficulty of one example by sampling (§3.2 of AdaGUI-R1), and a thought that leads to its action (Alg. 1)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from zlib import crc32

from models.asking import ask, ask_text, complete
from models.base import ChatModel, ChatReply, ChatRequest, Message, ModelError, ModelInvalidAnswer, Usage
from models.transport import added
from models.vision.answers import UNSCALED, Scale, read_completion
from models.vision.coordinates import CoordinateSpace
from models.vision.pictures import picture_for
from models.vision.places import names_axes
from models.vision.profiles import VisionProfile
from training.grpo.adaptive.prompts import (
    Equivalence,
    clean_thought,
    equivalence,
    first_thought,
    predicted_from,
    revised_thought,
)
from training.grpo.adaptive.settings import AdaptiveSettings
from training.grpo.completion_length import right_answer
from training.grpo.examples import Example, Preparation, image_size, messages_of, picture_as_png
from training.grpo.rewards import PointTarget, is_right
from training.grpo.rewards.adagui import difficulty


@dataclass(frozen=True, slots=True)
class SeeingModel:
    """A model and its coordinates."""

    model: ChatModel
    profile: VisionProfile | None
    """None: it reads text only."""
    space: CoordinateSpace | None = None
    """Units of its answers, in place of those of its profile."""

    def shown(self, example: Example) -> tuple[tuple[Message, ...], Scale]:
        """The example's prompt with its picture as this model is sent it, and pixels of the file per unit of its
        coordinates. Raises BadInput for an image that cannot be read."""
        if example.image is None:
            return messages_of(example), UNSCALED
        if self.profile is None:
            raise ModelInvalidAnswer(f"{self.model.spec} reads text only")
        png = picture_as_png(example)
        size = image_size(png)
        image, frame = picture_for(self.profile, png, size)
        extent = frame.extent(self.space or self.profile.space)
        scale = (size[0] / extent.width, size[1] / extent.height)
        return messages_of(example, (image,), frame.image), scale

    def is_right(self, example: Example, text: str, scale: Scale) -> bool:
        """Whether *text* answers the example, in a family's order of two bare numbers."""
        completion, target = read_completion(text, scale), example.target
        swapped = self.profile is not None and self.profile.order == "yx" and not names_axes(completion.answer)
        if not (swapped and isinstance(target, PointTarget)):
            return is_right(target, completion)
        left, top, right, bottom = target.box
        across, down = target.size
        turned = PointTarget(box=(top, left, bottom, right), size=(down, across))
        return is_right(turned, replace(completion, scale=(scale[1], scale[0])))


@dataclass(slots=True)
class Spent:
    """Calls and tokens of one example."""

    calls: int = 0
    usage: Usage = field(default_factory=lambda: Usage(cost_usd=0.0))

    def add(self, reply: ChatReply | ModelError) -> None:
        self.calls += reply.attempts
        if reply.usage is not None:
            self.usage = added(self.usage, reply.usage)


@dataclass(frozen=True, slots=True)
class StepMaker:
    """Makes the thought to imitate for one example. *policy* samples, *judge* writes and judges thoughts."""

    policy: SeeingModel
    judge: SeeingModel
    settings: AdaptiveSettings

    async def make(self, example: Example) -> Example:
        """*example* with its thought and how it was made. Raises ModelError: an answered one where no usable thought or
        judgement came."""
        settings, spent = self.settings, Spent()
        solved = await self._solved(example, spent)
        level = difficulty(solved, settings.levels)
        hard = level > settings.hard_above * settings.levels + 1e-9
        thought, agreed, revised = "", None, False
        if hard or settings.thoughts == "all":
            thought, agreed, revised = await self._thought(example, spent)
        made = Preparation(
            solved=solved,
            level=level,
            hard=hard,
            agreed=agreed,
            revised=revised,
            calls=spent.calls,
            tokens_in=spent.usage.tokens_in,
            tokens_out=spent.usage.tokens_out + spent.usage.tokens_thinking,
            cost_usd=spent.usage.cost_usd,
        )
        return example.model_copy(update={"thought": thought, "preparation": made})

    async def _solved(self, example: Example, spent: Spent) -> float:
        """ρ (Eq. 3). A truncated or unusable answer is a wrong one."""
        messages, scale = self.policy.shown(example)
        right = await asyncio.gather(
            *(self._sample(example, messages, scale, number, spent) for number in range(self.settings.samples))
        )
        return sum(right) / len(right)

    async def _sample(
        self, example: Example, messages: tuple[Message, ...], scale: Scale, number: int, spent: Spent
    ) -> bool:
        settings = self.settings
        seed = crc32(f"{settings.seed} {example.name} {number}".encode()) & 0x7FFF_FFFF
        request = ChatRequest(
            messages,
            max_tokens=settings.answer_tokens,
            temperature=settings.temperature,
            seed=seed,
            deadline_s=settings.deadline_s,
        )
        try:
            reply = await complete(self.policy.model, request)
        except ModelError as error:
            if not error.answered:
                raise
            spent.add(error)
            return False
        spent.add(reply)
        return self.policy.is_right(example, reply.text, scale)

    async def _thought(self, example: Example, spent: Spent) -> tuple[str, bool, bool]:
        """(thought, whether the first one led to the action, whether it is revised): Alg. 1."""
        messages, scale = self.judge.shown(example)
        right = right_answer(example.target, scale)
        prompt, images = _as_text(example), messages[-1].images
        thought = await self._written(first_thought(prompt, images, right), spent)
        predicted = await complete(self.judge.model, self._request(predicted_from(messages, thought)))
        spent.add(predicted)
        answer = read_completion(predicted.text, scale).answer
        agreed = self.judge.is_right(example, predicted.text, scale) or await self._equivalent(right, answer, spent)
        if agreed or not self.settings.revise:
            return thought, agreed, False
        asked = revised_thought(prompt, images, right, answer, thought)
        return await self._written(asked, spent), False, True

    async def _written(self, messages: tuple[Message, ...], spent: Spent) -> str:
        result = await ask_text(self.judge.model, self._request(messages, self.settings.thought_tokens), _read_thought)
        spent.add(result.reply)
        return result.answer

    async def _equivalent(self, right: str, predicted: str, spent: Spent) -> bool:
        result = await ask(self.judge.model, self._request(equivalence(right, predicted)), Equivalence)
        spent.add(result.reply)
        return result.answer.equivalent

    def _request(self, messages: tuple[Message, ...], tokens: int | None = None) -> ChatRequest:
        return ChatRequest(
            messages, max_tokens=tokens or self.settings.answer_tokens, deadline_s=self.settings.deadline_s
        )


def _read_thought(text: str) -> str:
    thought = clean_thought(text)
    if not thought:
        raise ModelInvalidAnswer("the answer holds no reasoning")
    return thought


def _as_text(example: Example) -> str:
    """The prompt of *example* as one text, images apart."""
    return "\n\n".join(f"{role}:\n{text}" for role, text in example.messages)
