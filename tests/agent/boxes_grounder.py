"""A grounder for tests that answers from the boxes of the observation, in any coordinate space and form of answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext

from agent.episode.grounder import Located, ModelGrounder
from agent.run import grounders
from envs.core.observation import Box, Observation
from models.base import ChatModel, ChatReply, ChatRequest, ModelError, Usage
from models.providers.scripted_model import ScriptedModel
from models.vision.coordinates import ImageFrame, Point, Size
from models.vision.pictures import picture_size
from models.vision.profiles import profile_named

Spot = Callable[[Observation], Point]
"""The point in CSS pixels of the view that a description means."""
Form = Callable[[Point], str]
"""How a model writes a point."""


def middle(box: Box | None) -> Point:
    assert box is not None, "it has no box"
    return Point(box.x + box.width / 2, box.y + box.height / 2)


def control(name: str, nth: int = 0, role: str = "") -> Spot:
    """The middle of the *nth* control with this name."""

    def spot(observation: Observation) -> Point:
        named = [e for e in observation.elements if e.key.name == name and e.key.role.startswith(role)]
        return middle(named[nth].box)

    return spot


def beside(name: str, across: float, down: float) -> Spot:
    """A point that misses the control: that far to the right of and below its middle."""

    def spot(observation: Observation) -> Point:
        x, y = control(name)(observation)
        return Point(x + across, y + down)

    return spot


def surface(observation: Observation) -> Point:
    return middle(observation.surfaces[0].box)


def json_point(point: Point) -> str:
    return f'```json\n{{"point_2d": [{point.x:g}, {point.y:g}]}}\n```'


def json_box(point: Point) -> str:
    """A box around *point* as Gemma writes it: top, left, bottom and right."""
    return f'```json\n[{{"box_2d": [{point.y - 2:g}, {point.x - 4:g}, {point.y + 2:g}, {point.x + 4:g}]}}]\n```'


def plain_point(point: Point) -> str:
    return f"x={point.x:g}, y={point.y:g}"


@dataclass
class FromBoxes:
    """A :class:`models.base.ChatModel` that knows the observation and answers with the point of a description."""

    spots: Mapping[str, Spot]
    profile: str = "general"
    form: Form = plain_point
    errs: list[str | ModelError] = field(default_factory=list[str | ModelError])
    """Answers, or errors, before it answers rightly."""
    spec: str = "grounder"
    requests: list[ChatRequest] = field(default_factory=list[ChatRequest])
    observation: Observation | None = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        if self.errs:
            answer = self.errs.pop(0)
            if isinstance(answer, ModelError):
                raise answer
            return self._reply(answer)
        assert self.observation is not None
        (image,) = request.messages[0].images
        description = next(words for words in self.spots if words in request.messages[0].text)
        frame = ImageFrame(Size(*self.observation.viewport), picture_size(image.data))
        space = profile_named(self.profile).space
        return self._reply(self.form(frame.to_model(space, self.spots[description](self.observation))))

    def _reply(self, text: str) -> ChatReply:
        return ChatReply(text, Usage(tokens_in=1_000, tokens_out=7, cost_usd=0.25), self.spec, 0.01)

    async def aclose(self) -> None: ...


class WatchedGrounder(ModelGrounder):
    """Tells its model the observation."""

    async def locate(self, description: str, observation: Observation) -> Located:
        model: Any = self._model
        model.observation = observation
        return await super().locate(description, observation)


def use(monkeypatch: pytest.MonkeyPatch, policy: ScriptedModel, grounder: FromBoxes) -> None:
    """Makes runs with `policy="policy"` and `grounder="grounder"` use these models."""
    made: dict[str, ChatModel] = {"policy": policy, "grounder": grounder}

    def make(spec: str, **_: object) -> ChatModel:
        return made[spec]

    monkeypatch.setattr("agent.run.components.make_model", make)
    monkeypatch.setattr(grounders, "ModelGrounder", WatchedGrounder)


def scale(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Makes browser contexts draw *factor* device pixels a CSS pixel."""
    plain: Any = Browser.new_context

    async def new_context(self: Browser, **options: Any) -> BrowserContext:
        return await plain(self, **{**options, "device_scale_factor": factor})

    monkeypatch.setattr(Browser, "new_context", new_context)
