"""Merges the answers of a page's processes: numbers refs, frames and groups, and converts the controls to records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from envs.core.observation import Box, Effect, Element, ElementKey, InputKind, Surface
from envs.core.record import storable
from envs.observer.world import World

_MARK = re.compile("([\u0001-\u0004])(\\d+)\u0005")
_REF, _FRAME, _REMOTE, _GROUP = "\u0001", "\u0002", "\u0003", "\u0004"


class Place(NamedTuple):
    """Identifies an element or group: a world and its number there."""

    world: World
    id: int


@dataclass(slots=True)
class Part:
    """The answer of one process."""

    world: World
    path: str
    """Frame path of its top document."""
    answer: dict[str, Any]
    remotes: dict[int, Part] = field(default_factory=dict)
    """Parts of its iframes that were read in other worlds, by index."""
    barred: dict[int, str] = field(default_factory=dict[int, str])
    """Origins of its iframes that may not be read, by index."""
    origin: tuple[float, float] = (0.0, 0.0)
    """Position of its viewport in the top viewport; set only if boxes are observed."""


@dataclass(slots=True)
class Numbering:
    """Numbers of refs, groups and frames in one observation, including those that `find` adds."""

    places: list[Place] = field(default_factory=list)
    """The place of ref n is at index n-1."""
    elements: list[Element] = field(default_factory=list)
    groups: list[Place] = field(default_factory=list)
    refs: dict[Place, int] = field(default_factory=dict)
    frames: int = 0

    def ref(self, place: Place) -> int:
        """Returns the ref of a place; a new place gets the next number."""
        if place not in self.refs:
            self.places.append(place)
            self.refs[place] = len(self.places)
        return self.refs[place]


def merged_text(part: Part, numbering: Numbering) -> str:
    """Returns the text of a part, with the texts of its remote frames and with all marks numbered."""
    numbers: dict[int, int] = {}
    group_numbers: dict[int, int] = {}

    def number(mark: re.Match[str]) -> str:
        kind, local = mark[1], int(mark[2])
        if kind == _REF:
            return f"[{numbering.ref(Place(part.world, local))}]"
        if kind == _GROUP:
            if local not in group_numbers:
                numbering.groups.append(Place(part.world, local))
                group_numbers[local] = len(numbering.groups)
            return f"g{group_numbers[local]}"
        if local not in numbers:
            numbering.frames += 1
            numbers[local] = numbering.frames
        if kind == _FRAME:
            return str(numbers[local])
        return _remote_text(part, local, numbers[local], numbering)

    return _MARK.sub(number, part.answer["text"])


def _remote_text(part: Part, index: int, number: int, numbering: Numbering) -> str:
    head = _MARK.sub(str(number), part.answer["frames"][index]["open"])
    remote = part.remotes.get(index)
    barred = part.barred.get(index)
    unread = "(this frame could not be read)" if barred is None else f"(this frame is not allowed: {barred})"
    body = merged_text(remote, numbering) if remote else unread
    return f"{head}\n{body}\n--- end frame {number}" if body else f"{head}\n--- end frame {number}"


def add_elements(part: Part, numbering: Numbering) -> None:
    """Adds the controls of a part and its remote frames to *numbering*, including those not shown in the text."""
    columns = part.answer["controls"]
    refs = [numbering.ref(Place(part.world, id_)) for id_ in columns["id"]]
    numbering.elements.extend([_PENDING] * (len(numbering.places) - len(numbering.elements)))
    for ref, element in zip(refs, _typed(refs, part, columns), strict=True):
        numbering.elements[ref - 1] = element
    for remote in part.remotes.values():
        add_elements(remote, numbering)


_PENDING = Element(0, ElementKey("", "", "", 0, ""), "", (), None, (), None, False)


def _typed(refs: list[int], part: Part, columns: dict[str, Any]) -> Iterator[Element]:
    names = ("role", "name", "ordinal", "digest", "frame", "tag", "states", "value", "options", "shown", "title")
    boxes, effects, cued = (columns[name] or [None] * len(refs) for name in ("box", "effect", "cues"))
    rows = zip(refs, *(columns[name] for name in names), boxes, effects, cued, strict=True)
    for ref, role, name, ordinal, digest, frame, tag, states, value, options, shown, title, box, effect, cues in rows:
        key = ElementKey(joined(part.path, frame), storable(role), storable(name), ordinal, digest)
        yield Element(
            ref,
            key,
            tag,
            tuple(states.split()) if states else (),
            None if value is None else storable(value),
            tuple(storable(option) for option in options) if options else (),
            _moved(box, part.origin) if box else None,
            bool(shown),
            _effect(effect, part.world) if effect else None,
            tuple(cues.split()) if cues else (),
            storable(title),
        )


_INPUT_KINDS: tuple[tuple[int, InputKind], ...] = ((1, "press"), (2, "edit"), (4, "hover"))


def _effect(row: tuple[Any, Any, Any, int], world: World) -> Effect:
    """Converts an effect row; if some listeners are unknown, everything counts as listened to."""
    sends, leads, takes, listened = row
    return Effect(
        sends,
        leads,
        takes,
        frozenset(name for bit, name in _INPUT_KINDS if listened & bit or not world.knows_all_listeners),
    )


def surfaces_of(part: Part) -> Iterator[Surface]:
    """Yields the drawn areas of a part, without those of its remote frames."""
    for surface in part.answer["surfaces"]:
        yield Surface(surface["kind"], storable(surface["name"]), _moved(surface["box"], part.origin))


def _moved(box: list[float], origin: tuple[float, float]) -> Box:
    return Box(box[0] + origin[0], box[1] + origin[1], box[2], box[3])


def joined(outer: str, inner: str) -> str:
    """Returns the path of a frame *inner* within frame *outer*."""
    return f"{outer}.{inner}" if outer and inner else outer or inner
