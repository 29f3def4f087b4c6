"""A temperature that a model does not take is named before the first step."""

from __future__ import annotations

import pytest

from agent.cli.run import _notices
from agent.config import RunConfig


@pytest.mark.parametrize(
    ("policy", "temperature", "named"),
    [
        ("gemini:gemini-3.1-pro-preview", 0.3, True),
        ("gemini:gemini-3.1-pro-preview", 0.0, False),
        ("gemini:gemini-2.5-pro", 0.3, False),
        ("embedded", 0.3, False),
        ("oracle", 0.3, False),
    ],
)
def test_a_temperature_that_is_not_sent_is_named(policy: str, temperature: float, named: bool) -> None:
    line = f"{policy} samples at its own temperature of 1: 0.3 is not sent"
    assert (line in _notices(RunConfig(policy=policy, temperature=temperature), as_json=False)) is named
