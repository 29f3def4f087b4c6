"""Fixtures: pages and steps for judges, from plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envs.core.observation import Observation
from envs.core.tasks import Milestone
from judges.base import Progress


@pytest.fixture
def make_observation() -> Callable[..., Observation]:
    """Makes an observation; keyword arguments replace its fields."""

    def make(text: str = "Welcome", **fields: Any) -> Observation:
        blank: dict[str, Any] = {
            "url": "http://shop.test/",
            "title": "Shop",
            "elements": (),
            "tabs": (),
            "digest": "0" * 16,
            "viewport": (1280, 800),
            "scroll": (0, 0),
            "controls_total": 0,
        }
        return Observation(text=text, **(blank | fields))

    return make


@pytest.fixture
def progress(make_observation: Callable[..., Observation]) -> Callable[..., Progress]:
    """Makes the progress of a log-in with three milestones on a page with *text*."""
    plan = ("Have ann in the field Username", "Have a password in the field Password", "Submit the form")

    def make(text: str = "Welcome", *, texts: tuple[str, ...] = plan, **fields: Any) -> Progress:
        milestones = tuple(Milestone(id=f"login-{i}", text=t) for i, t in enumerate(texts))
        page = make_observation(text)
        usual = {"instruction": "Log in as ann", "milestones": milestones, "z": (False,) * len(texts)}
        values: dict[str, Any] = {**usual, "observation": page, **fields}
        return Progress(**values)

    return make
