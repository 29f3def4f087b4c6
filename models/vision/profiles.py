"""What is known of families of vision models: the coordinates that they answer in, the images that they take.

A profile is found, in this order, by

1. a declaration: `vision_profile` of a run, or `mira.json` beside a checkpoint's weights;
2. the `model_type` in a checkpoint's `config.json` (`local:`);
3. the model's name (served models), for example `vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-VL-8B-Instruct`.

All other models have the profile `general`: pixels of the image that they are sent. Nothing here imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from models.base import ModelUnavailable
from models.vision.coordinates import CoordinateSpace, Size, smart_resize

NO_NAME: Final = r"(?!)"
"""A pattern that no name contains."""


@dataclass(frozen=True, slots=True)
class ResizeRule:
    """How a processor resizes images: see :func:`models.vision.coordinates.smart_resize`."""

    factor: int
    min_pixels: int
    max_pixels: int

    def apply(self, size: Size) -> Size:
        return smart_resize(size, factor=self.factor, min_pixels=self.min_pixels, max_pixels=self.max_pixels)


@dataclass(frozen=True, slots=True)
class VisionProfile:
    """One family of vision models."""

    name: str
    space: CoordinateSpace
    click: str
    """How its family writes a click or a point by itself, for example in grounding."""
    order: Literal["xy", "yx"] = "xy"
    """Order of two bare numbers, such as those of a point in JSON; named numbers have none."""
    resize: ResizeRule | None = None
    """Of its published processor; None: the size after resizing does not matter."""
    longest_side: int | None = None
    """Longest side in pixels of an image that its service does not shrink."""
    most_pixels: int | None = None
    """Largest area in pixels of such an image."""
    model_types: tuple[str, ...] = ()
    """`model_type` of its checkpoints."""
    names: str = NO_NAME
    """Regular expression that its models' names contain; case is ignored."""

    @property
    def recognized_by(self) -> tuple[str, ...]:
        """What names it, in words."""
        types = [f"model_type {kind}" for kind in self.model_types]
        return (*types, *([f"name ~ {self.names}"] if self.names != NO_NAME else [])) or ("declaration",)

    def sent_size(self, size: Size) -> Size:
        """The size in which an image of *size* is sent, in whole pixels: within the limits of the service and, if the
        answer is in pixels of the resized image, already resized, so that the server's processor keeps it as it is."""
        shrink = min(
            1.0,
            (self.longest_side or max(size)) / max(size),
            ((self.most_pixels or size.width * size.height) / (size.width * size.height)) ** 0.5,
        )
        fitting = size if shrink == 1 else Size(*(max(1, int(side * shrink)) for side in size))
        if self.space is CoordinateSpace.RESIZED and self.resize is not None:
            return self.resize.apply(fitting)
        return fitting


_QWEN2_PIXELS: Final = ResizeRule(factor=28, min_pixels=4 * 28 * 28, max_pixels=16_384 * 28 * 28)

GENERAL: Final = VisionProfile("general", CoordinateSpace.PIXELS, click="(x, y)")

PROFILES: Final = (
    VisionProfile(
        "ui-tars-1.5",
        CoordinateSpace.RESIZED,
        click="click(start_box='(x,y)')",
        resize=_QWEN2_PIXELS,
        names=r"ui-?tars-?1[.-]5",
    ),
    VisionProfile("ui-tars", CoordinateSpace.THOUSAND, click="click(start_box='(x,y)')", names=r"ui-?tars-(2|7|72)b"),
    VisionProfile(
        "qwen2.5-vl",
        CoordinateSpace.RESIZED,
        click='{"point_2d": [x, y]}',
        resize=_QWEN2_PIXELS,
        model_types=("qwen2_5_vl",),
        names=r"qwen-?2[.-]5-?vl",
    ),
    VisionProfile(
        "qwen2-vl",
        CoordinateSpace.THOUSAND,
        click="<|box_start|>(x,y)<|box_end|>",
        model_types=("qwen2_vl",),
        names=r"qwen-?2-?vl",
    ),
    VisionProfile(
        "qwen3-vl",
        CoordinateSpace.THOUSAND,
        click='{"point_2d": [x, y]}',
        model_types=("qwen3_vl", "qwen3_vl_moe"),
        names=r"qwen-?3-?vl",
    ),
    VisionProfile(
        "smolvlm",
        CoordinateSpace.UNIT,
        click="click(x=0.5, y=0.5)",
        model_types=("smolvlm", "idefics3"),
        names=r"smolvlm|smol2operator|idefics-?3",
    ),
    VisionProfile(
        "gemma-3",
        CoordinateSpace.THOUSAND,
        click='{"box_2d": [top, left, bottom, right]}',
        order="yx",
        model_types=("gemma3",),
        names=r"gemma-?3(?!n|[-:]?1b|[-:]?270m)",
    ),
    VisionProfile("gemini", CoordinateSpace.THOUSAND, click='{"point": [y, x]}', order="yx", names=r"\bgemini-"),
    VisionProfile(
        "claude",
        CoordinateSpace.PIXELS,
        click='{"action": "left_click", "coordinate": [x, y]}',
        longest_side=1_568,
        most_pixels=1_150_000,
        names=r"\bclaude-",
    ),
    GENERAL,
    VisionProfile("thousand", CoordinateSpace.THOUSAND, click="(x, y)"),
    VisionProfile("unit", CoordinateSpace.UNIT, click="(x, y)"),
)
"""All profiles. The first whose pattern is in a name counts. The last ones are for declarations only."""


def profile_named(name: str) -> VisionProfile:
    """The profile called *name*. Raises :class:`ModelUnavailable`, which lists the known ones."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    known = ", ".join(profile.name for profile in PROFILES)
    raise ModelUnavailable(f"unknown vision profile {name!r}: use one of {known}")


def profile_of_name(model: str) -> VisionProfile:
    """The profile of a served *model* by its name; `general` if no pattern is in it."""
    return next((profile for profile in PROFILES if re.search(profile.names, model, re.IGNORECASE)), GENERAL)


def profile_of_config(config: Mapping[str, Any], processor: Mapping[str, Any]) -> VisionProfile:
    """The profile of a checkpoint with *config* (`config.json`), with the resizing of its image *processor* (the
    settings in `preprocessor_config.json`); `general` for an unknown `model_type`."""
    kind = config.get("model_type")
    return resizing_as(next((profile for profile in PROFILES if kind in profile.model_types), GENERAL), processor)


def resizing_as(profile: VisionProfile, processor: Mapping[str, Any]) -> VisionProfile:
    """The *profile* with the resizing of a checkpoint's image *processor* in place of its family's published one."""
    return replace(profile, resize=_resize_rule(processor, profile.resize)) if profile.resize else profile


def _resize_rule(processor: Mapping[str, Any], published: ResizeRule) -> ResizeRule:
    size: Mapping[str, Any] = processor.get("size") or {}
    patch, merge = processor.get("patch_size"), processor.get("merge_size")
    return ResizeRule(
        factor=patch * merge if patch and merge else published.factor,
        min_pixels=processor.get("min_pixels") or size.get("shortest_edge") or published.min_pixels,
        max_pixels=processor.get("max_pixels") or size.get("longest_edge") or published.max_pixels,
    )
