"""Vision checkpoints and images that several files of tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny_models.vision_language import ARCHITECTURES


@pytest.fixture(scope="session")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the checkpoint of an architecture, which is built once."""
    built: dict[str, Path] = {}

    def start(name: str) -> Path:
        if name not in built:
            built[name] = ARCHITECTURES[name](tmp_path_factory.mktemp("start") / "model")
        return built[name]

    return start


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.training.grpo.vision_cases import draw_images

    return draw_images(tmp_path_factory.mktemp("images"))
