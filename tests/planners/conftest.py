"""Factory of situations for planners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envs.core.observation import Observation
from planners.base import Situation

Situate = Callable[..., Situation]


@pytest.fixture
def situate() -> Situate:
    """Makes a situation on a small form; keyword arguments replace its fields, `text` and `screenshot` the page's."""

    def make(*, text: str = '[1] textbox "Email"', screenshot: bytes | None = None, **fields: Any) -> Situation:
        page = Observation(
            "http://shop.test/", "Shop", text, (), (), "0" * 16, (1280, 800), (0, 0), 1, screenshot=screenshot
        )
        values: dict[str, Any] = {"instruction": "Buy tea", "category": "shop", "observation": page, **fields}
        return Situation(**values)

    return make
