"""Pictures for tests, and tiny vision-language checkpoints with room for whole prompts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw

from tests.tiny_models.vision_language import gemma3, idefics3, qwen2_5_vl, qwen3_vl, smolvlm

FAMILIES: dict[str, Callable[[Path], Path]] = {
    "qwen2.5-vl": qwen2_5_vl,
    "qwen3-vl": qwen3_vl,
    "gemma-3": gemma3,
    "smolvlm": smolvlm,
    "idefics3": idefics3,
}


def red_square(width: int, height: int) -> bytes:
    """A PNG, white with a red square."""
    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).rectangle((10, 10, 40, 40), fill="red")
    out = io.BytesIO()
    image.save(out, format="PNG")
    return out.getvalue()


def with_context(folder: Path, tokens: int) -> Path:
    """Lets the checkpoint in *folder* read prompts of *tokens* tokens; rotary positions have no limit of their own."""
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = tokens
    (folder / "config.json").write_text(json.dumps(config))
    return folder
