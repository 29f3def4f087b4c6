"""Page templates: what can be rendered, and the split that each of them is in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, get_args

from envs.core.errors import BadInput
from training.grpo.examples import Split

Source = Literal["generated", "miniwob", "sites"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
TRAINING_SEED: Final = 1_000_000
"""First seed of MiniWoB++ instances that no evaluation uses."""
SHARES: Final[tuple[tuple[Split, float], ...]] = (("train", 0.8), ("validation", 0.1), ("test", 0.1))
_SIZE: Final = re.compile(r"(\d{2,5})x(\d{2,5})(?:@(\d(?:\.\d{1,3})?))?")
_VARIANT: Final = re.compile(r"(-?(\d+|easy|medium|hard|nodelay|two|basic|2d|3d))+$")
MINIWOB_SIDE: Final = 260
"""CSS pixels that a page of MiniWoB++ needs; larger views are zoomed."""


class ViewSize(NamedTuple):
    """A view in CSS pixels, and the pixels of a screenshot per CSS pixel."""

    width: int
    height: int
    scale: float

    def __str__(self) -> str:
        return f"{self.width}x{self.height}@{self.scale:g}"

    def zoomed(self, side: int) -> ViewSize:
        """The view under a browser's zoom, so large that its shorter side still has *side* CSS pixels."""
        factor = max(1, min(self.width, self.height) // side)
        return ViewSize(self.width // factor, self.height // factor, self.scale * factor)


class Template(NamedTuple):
    """A family of pages."""

    source: Source
    name: str
    """Unique among templates of its source; pages of one family share it."""
    page: str
    """The page: the number of a layout, the task of MiniWoB++, or an address of a site."""

    @property
    def id(self) -> str:
        return f"{self.source}/{self.name}"


def parse_sizes(text: str) -> tuple[ViewSize, ...]:
    """Parses `1280x800,390x844@3`. Raises BadInput."""
    sizes: list[ViewSize] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        match = _SIZE.fullmatch(word)
        size = ViewSize(int(match[1]), int(match[2]), float(match[3] or 1)) if match else None
        if size is None or not (200 <= size.width <= 4096 and 200 <= size.height <= 4096 and 0.5 <= size.scale <= 4):
            raise BadInput(
                f"--sizes: {word!r} is not WIDTHxHEIGHT@SCALE, sides from 200 to 4096 and a scale from 0.5 to 4, for "
                "example 1280x800 or 390x844@3"
            )
        sizes.append(size)
    if not sizes or len(set(sizes)) < len(sizes):
        raise BadInput(f"--sizes {text!r} names {'a size twice' if sizes else 'no size'}")
    return tuple(sizes)


def parse_sources(text: str) -> tuple[Source, ...]:
    """Parses `generated,miniwob`. Raises BadInput."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or set(words) - set(SOURCES):
        raise BadInput(f"--sources {text!r}: use some of {', '.join(SOURCES)}")
    return tuple(source for source in SOURCES if source in words)


def generated_templates(count: int) -> Sequence[Template]:
    """The first *count* layouts."""
    return [Template("generated", f"{number:05}", str(number)) for number in range(count)]


def miniwob_templates() -> Sequence[Template]:
    """All pages of the installed package; versions of one page (`-2`, `-easy`, `-nodelay`, `email-inbox-…`) have one
    template. Raises BadInput without the package."""
    from envs.suites.miniwob.pages import html_root, task_names

    names = task_names(html_root())
    families = sorted({_VARIANT.sub("", name) or name for name in names}, key=len)
    return [Template("miniwob", next(each for each in families if f"{name}-".startswith(each)), name) for name in names]


def split_of(template: Template, seed: int) -> Split:
    """The split of all pages of *template*, by a hash: 80 % train, 10 % validation, 10 % test. It does not depend on
    the other templates, so that data sets of one seed can be joined."""
    digest = hashlib.sha256(f"{seed} {template.id}".encode()).digest()
    share = int.from_bytes(digest[:8]) / 2**64
    for split, width in SHARES:
        if share < width:
            return split
        share -= width
    return SHARES[-1][0]
