"""Factory of situations for planners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envs.core.observation import Observation
from envs.core.tasks import Milestone
from planners.base import Situation

Situate = Callable[..., Situation]


@pytest.fixture
def situate() -> Situate:
    """Makes a situation on a small form; keyword arguments replace its fields, `text` and `screenshot` the page's.
    `anchors` and `open` are the achieved and the other milestones of the plan."""

    def make(
        *,
        text: str = '[1] textbox "Email"',
        screenshot: bytes | None = None,
        anchors: tuple[Milestone, ...] = (),
        open: tuple[Milestone, ...] = (),
        **fields: Any,
    ) -> Situation:
        page = Observation(
            "http://shop.test/", "Shop", text, (), (), "0" * 16, (1280, 800), (0, 0), 1, screenshot=screenshot
        )
        plan = {"milestones": anchors + open, "z": (True,) * len(anchors) + (False,) * len(open)}
        values: dict[str, Any] = {"instruction": "Buy tea", "category": "shop", "observation": page, **plan, **fields}
        return Situation(**values)

    return make
