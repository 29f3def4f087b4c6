"""The grounder: a model that finds on a screenshot of the view what the policy describes in words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, assert_never

from agent.episode.policy import ModelCall
from envs.core.observation import Observation
from envs.core.record import storable
from models.asking import complete_or_empty
from models.base import (
    Budget,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    answer_turn,
)
from models.prompting.prompt_text import PromptText, message, words
from models.thinking import budget_of
from models.vision.coordinates import Point
from models.vision.grounding import GroundingPrompt, PointProblem, read_point
from models.vision.pictures import picture_for

ANSWER_TOKENS: Final = 128
"""Visible tokens of an answer; a point is far shorter."""
THOUGHT_TOKENS: Final = 512
"""Visible tokens that a thought may take where the question asks for one."""
TRIES: Final = 2
"""Answers to one question; the second is asked for with what was wrong with the first."""


@dataclass(frozen=True, slots=True)
class Located:
    """The answer to one question."""

    point: Point | PointProblem
    """CSS pixels of the view; what was wrong with the last answer if it names no usable point."""
    answer: str
    """The last answer, storable."""
    calls: tuple[ModelCall, ...]


class ModelGrounder:
    """Asks a chat model for points, in the form that it was trained on."""

    def __init__(
        self,
        model: ChatModel,
        form: GroundingPrompt,
        *,
        deadline_s: float = 120.0,
        seed: int = 0,
        thinking: Budget | None = None,
    ) -> None:
        self.spec = model.spec
        self.form = form
        self._model = model
        self._deadline_s = deadline_s
        self._seed = seed
        self._thinking: Budget | None = None if thinking is None else budget_of(model, thinking)

    async def locate(self, description: str, observation: Observation) -> Located:
        """Asks where the described control is on the screenshot of *observation*, which must have one.

        Raises :class:`models.base.ModelError`, with the usage of all answers to this question."""
        assert observation.screenshot is not None
        image, frame = await asyncio.to_thread(
            picture_for, self.form.profile, observation.screenshot, observation.viewport
        )
        messages = (message("user", self.form.where_is(description, frame.image), images=(image,)),)
        calls: list[ModelCall] = []
        while True:
            reply = await self._ask(messages, calls)
            answer = storable(reply.text)
            point = read_point(answer, self.form, frame)
            problem = point if isinstance(point, PointProblem) else None
            calls.append(ModelCall(messages, reply, None if problem is None else f"the answer {problem}"))
            if problem is None or len(calls) == TRIES:
                return Located(point, answer, tuple(calls))
            messages = (*messages, answer_turn(answer), message("user", _complaint(problem)))

    async def _ask(self, messages: tuple[Message, ...], before: list[ModelCall]) -> ChatReply:
        """Sends the messages. A truncated or empty answer counts as one without a point."""
        request = ChatRequest(
            messages=messages,
            thinking_tokens=self._thinking,
            max_tokens=ANSWER_TOKENS + (THOUGHT_TOKENS if self.form.think else 0),
            seed=self._seed,
            deadline_s=self._deadline_s,
        )
        return await complete_or_empty(self._model, request, [call.reply for call in before])


def _complaint(problem: PointProblem) -> PromptText:
    match problem:
        case PointProblem.NONE:
            wrong = words("Your answer names no point.")
        case PointProblem.SEVERAL:
            wrong = words("Your answer names several points.")
        case PointProblem.OUTSIDE:
            wrong = words("The point of your answer is outside of the image.")
        case _:
            assert_never(problem)
    return wrong + words(" Answer again with exactly one point of the image: x and y.")
