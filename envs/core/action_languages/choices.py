"""The values that a page allows in an action: numbers of controls, options, tabs, groups, files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from envs.core.control_labels import control_label
from envs.core.observation import TEXT_ROLES, Element, Observation

_TEXT_TAGS: Final = frozenset({"input", "textarea"})
_FILE_ROLE: Final = "file"
"""The role of a file input that has no ARIA role."""
_NO_TEXT_ROLES: Final = frozenset(
    {"checkbox", "radio", "button", "slider", "switch", "menuitem", "link", "option", _FILE_ROLE}
)
_GROUP = re.compile(r"^… (g\d+): ", re.MULTILINE)
_CUT_LIST = re.compile(r"\[(\d+)\] (?:(?! \[\d+\] ).)* options: (?:(?! \[\d+\] ).)* … \d+ more")
"""A drop-down whose options are not all shown."""
_SHORTENED = re.compile(r"…|^--- ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PageChoices:
    """The valid values of each kind of slot on one page; an empty tuple means that the action is impossible."""

    controls: tuple[int, ...] = ()
    """Numbers of controls that are not disabled."""
    labels: tuple[str, ...] = ()
    """The label of each of them, see :func:`envs.core.control_labels.control_label`."""
    acted_on: int | None = None
    """The only control to act on; None where any may be."""
    fields: tuple[int, ...] = ()
    """Those that take text."""
    lists: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Those that are drop-downs, with their options; no options where the page does not show all of them."""
    file_fields: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Collapsed groups of the page, `g1`."""
    tabs: tuple[int, ...] = ()
    """Tabs other than the one in front."""
    tools: tuple[str, ...] = ()
    """Names of the tools of the run."""
    dialog: bool = False
    """A dialog blocks the page and must be answered first."""
    coordinates: bool = False
    """Actions at a place of the view are offered."""
    has_lists: bool = False
    """There is a drop-down, which may be disabled until another control of the page is used."""
    shortened: bool = False
    """The text leaves out something of the page, or shortens it."""


def page_choices(
    observation: Observation, *, files: Iterable[str] = (), tools: Iterable[str] = (), coordinates: bool = False
) -> PageChoices:
    """The choices of the page in *observation*; *files* may be uploaded, *tools* called."""
    usable = [element for element in observation.elements if "disabled" not in element.states]
    cut = frozenset(map(int, _CUT_LIST.findall(observation.text)))
    return PageChoices(
        controls=_numbers(usable),
        labels=tuple(map(control_label, usable)),
        fields=_numbers(element for element in usable if _takes_text(element)),
        lists=tuple((element.ref, _options(element, cut)) for element in usable if element.options),
        file_fields=_numbers(element for element in usable if _takes_file(element)),
        files=tuple(files),
        groups=tuple(_GROUP.findall(observation.text)),
        tabs=tuple(tab.index for tab in observation.tabs if not tab.active),
        tools=tuple(tools),
        dialog=observation.dialog is not None,
        coordinates=coordinates,
        has_lists=any(element.options for element in observation.elements),
        shortened=bool(
            _SHORTENED.search(observation.text)
            or observation.note
            or observation.controls_total > len(observation.elements)
        ),
    )


def _numbers(elements: Iterable[Element]) -> tuple[int, ...]:
    return tuple(element.ref for element in elements)


def _options(element: Element, cut: frozenset[int]) -> tuple[str, ...]:
    return () if element.ref in cut else tuple(dict.fromkeys(element.options))


def _takes_text(element: Element) -> bool:
    if element.effect is not None and element.effect.takes:
        return element.effect.takes == "text"
    if "readonly" in element.states or element.options:
        return False
    role = element.key.role
    return role in TEXT_ROLES or (element.tag in _TEXT_TAGS and role not in _NO_TEXT_ROLES)


def _takes_file(element: Element) -> bool:
    return element.key.role == _FILE_ROLE or (element.effect is not None and element.effect.takes == "file")
