"""The vision profile of a model spec, read from a checkpoint's JSON files or the name of a served model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from models.base import ModelUnavailable
from models.local.declarations import declarations, declare
from models.specs import parse_spec
from models.vision.profiles import VisionProfile, profile_named, profile_of_config, profile_of_name, with_processor

_IMAGE_PROCESSOR: Final = ("processor_config.json", "preprocessor_config.json")
"""Files with the settings of an image processor: newer and older checkpoints have one of them, or both."""
PROCESSOR_FILES: Final = (*_IMAGE_PROCESSOR, "video_preprocessor_config.json", "chat_template.json")
"""Files of a multimodal checkpoint's processor. transformers and vLLM cannot load such a model without them."""
PROFILE_KEY: Final = "vision_profile"
"""Key of the profile's name in `mira.json`."""


def is_vision_checkpoint(folder: Path) -> bool:
    """Whether the checkpoint in *folder* has an image encoder, and the processor that prepares its images. Without a
    processor it plays as a model of text."""
    encoder = _json(folder / "config.json").get("vision_config")
    return isinstance(encoder, Mapping) and has_processor(folder)


def has_processor(folder: Path) -> bool:
    """Whether *folder*, of a checkpoint or of an adapter, has the settings of an image processor."""
    return any((folder / name).is_file() for name in _IMAGE_PROCESSOR)


def copy_processor(out: Path, *places: Path) -> None:
    """Copies the processor of the first of *places* that has one to *out*: its `PROCESSOR_FILES`."""
    source = next((place for place in places if has_processor(place)), None)
    if source is None:
        return
    for name in PROCESSOR_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, out / name)


def vision_profile(spec: str, declared: str = "auto") -> VisionProfile | None:
    """The profile of the model that *spec* names; None if that model is known to read text only.

    *declared*: name of a profile, which takes precedence, or `auto`. Raises :class:`ModelUnavailable` for an unknown
    name.
    """
    parsed = None
    with suppress(ModelUnavailable):  # a model that was made by other means
        parsed = parse_spec(spec)
    if parsed is not None and (folders := parsed.checkpoint_folders()):
        if not is_vision_checkpoint(folders[-1]):
            return None
        return _of_checkpoint(folders, declared)
    served = spec if parsed is None else str(getattr(parsed, "model", ""))
    return profile_of_name(served) if declared == "auto" else profile_named(declared)


def declare_profile(folder: Path, name: str) -> None:
    """Declares in `mira.json` that the checkpoint in *folder* answers in the coordinates of the profile *name*."""
    declare(folder, PROFILE_KEY, profile_named(name).name)


def _of_checkpoint(folders: Sequence[Path], declared: str) -> VisionProfile:
    """The declared profile, or that of the model's type, with the resizing of the processor that is loaded: the
    adapter's if it brings one, else the checkpoint's."""
    processor = _image_processor(next(filter(has_processor, folders), folders[-1]))
    in_files = (declarations(folder).get(PROFILE_KEY) for folder in folders)
    names = [declared] if declared != "auto" else [name for name in in_files if isinstance(name, str)]
    if names:
        return with_processor(profile_named(names[0]), processor)
    return profile_of_config(_json(folders[-1] / "config.json"), processor)


def _image_processor(folder: Path) -> dict[str, Any]:
    """The settings of the image processor, in the older file of their own or in the processor's."""
    nested: Any = _json(folder / "processor_config.json").get("image_processor")
    return nested if isinstance(nested, dict) else _json(folder / "preprocessor_config.json")


def _json(path: Path) -> dict[str, Any]:
    """The JSON object in *path*; empty if it holds none."""
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}
