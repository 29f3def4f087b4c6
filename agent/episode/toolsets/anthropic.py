"""Anthropic's tool sets: what each member comes to here.

Browser tool set: elements are named by `ref_N`, given by `read_page` and `find`. Points are those of the screenshot.
Without equivalent, and withheld from the model: holding a key or a mouse button, the console and the network of the
page, and code run in the page, which would pass by the boundary of typed actions. Keys held during a click are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from agent.episode.toolsets.calls import (
    Arguments,
    BadCall,
    Do,
    Handler,
    Outcome,
    Refuse,
    Scene,
    Table,
    TextResult,
    drag,
    element_at,
    pointer,
    pressed,
    screenshot,
    typed,
    zoom,
)
from agent.episode.toolsets.functions import navigated
from envs.core.actions import (
    Action,
    Click,
    ClickAt,
    CloseTab,
    Expand,
    FocusTab,
    Hover,
    NewTab,
    ScrollAt,
    Select,
    Type,
    Upload,
    Wait,
)
from envs.core.observation import Element
from models.prompting.prompt_text import cut, fenced, fenced_lines, words

NOTCH: Final = 100
"""CSS pixels of one notch of the mouse wheel, as Chromium scrolls."""
FOUND: Final = 20
"""Elements that `find` returns at most."""
PAGE_CHARS: Final = 50_000
"""Longest page text of one call, as the tool set documents it."""
BROWSER_WITHHELD: Final = ("hold_key", "left_mouse_down", "left_mouse_up")
COMPUTER_WITHHELD: Final = ("hold_key", "left_mouse_down", "left_mouse_up", "cursor_position")
_NUMBER = re.compile(r"(?<!\\)\[(\d+)\] (?=[^\s\"])")
_WORD = re.compile(r"\w+")
_GROUP = re.compile(r"g\d+")
_DIRECTIONS: Final[Mapping[str, tuple[int, int]]] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_CHECKED: Final = frozenset({"checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"})
Button = Literal["left", "right", "middle"]


def browser_members(*, uploads: bool) -> dict[str, bool]:
    """The members that are offered or withheld other than by default."""
    return dict.fromkeys(BROWSER_WITHHELD, False) | ({"file_upload": True} if uploads else {})


COMPUTER_MEMBERS: Final[Mapping[str, bool]] = dict.fromkeys(COMPUTER_WITHHELD, False)


def _scrolled(call: Arguments, at: tuple[float, float], amount: float) -> Outcome:
    direction = _DIRECTIONS.get(call.text("scroll_direction"))
    if direction is None:
        return Refuse(words("scroll up, down, left or right"))
    pixels = NOTCH * min(max(1.0, amount), 50.0)
    return Do((ScrollAt(x=at[0], y=at[1], dx=direction[0] * pixels, dy=direction[1] * pixels),))


def _waited(_: Arguments, __: Scene) -> Outcome:
    return Do((Wait(),))


# --- computer ---


def _computer_click(button: Button, count: int) -> Handler:
    def click(call: Arguments, scene: Scene) -> Outcome:
        call.refuse("text")
        x, y = pointer(scene) if call.values.get("coordinate") is None else call.pair("coordinate")
        return Do((ClickAt(x=x, y=y, button=button, count=count),))

    return click


def _computer_drag(call: Arguments, _: Scene) -> Outcome:
    call.refuse("text")
    return drag(call.pair("start_coordinate"), call.pair("coordinate"))


def _computer_scroll(call: Arguments, scene: Scene) -> Outcome:
    call.refuse("text")
    width, height = scene.observation.viewport
    at = (width / 2, height / 2) if call.values.get("coordinate") is None else call.pair("coordinate")
    return _scrolled(call, at, call.number("scroll_amount"))


def _computer_move(call: Arguments, scene: Scene) -> Outcome:
    return _hover_at(scene, *call.pair("coordinate"))


def _key(call: Arguments, _: Scene) -> Outcome:
    return pressed(call.text("text"), call.number("repeat", 1))


def _hover_at(scene: Scene, x: float, y: float) -> Outcome:
    element = element_at(scene.observation, x, y)
    if element is None:
        return Refuse(words("there is no control at this point that the pointer could be moved to"))
    return Do((Hover(ref=element.ref),))


COMPUTER: Final[Table] = {
    "screenshot": screenshot,
    "zoom": zoom,
    "left_click": _computer_click("left", 1),
    "right_click": _computer_click("right", 1),
    "middle_click": _computer_click("middle", 1),
    "double_click": _computer_click("left", 2),
    "triple_click": _computer_click("left", 3),
    "left_click_drag": _computer_drag,
    "mouse_move": _computer_move,
    "scroll": _computer_scroll,
    "type": typed,
    "key": _key,
    "wait": _waited,
}


# --- browser ---


def _here(handler: Handler) -> Handler:
    """A call for a tab other than the front one is refused: an action acts on what is shown."""

    def checked(call: Arguments, scene: Scene) -> Outcome:
        tab = call.values.get("tab_id")
        if tab is not None and not any(each.active and str(each.index) == str(tab) for each in scene.observation.tabs):
            return Refuse(words("this tab is not in front: switch to it first"))
        return handler(call, scene)

    return checked


def _element(call: Arguments, scene: Scene) -> Element:
    """The element of a target that names one. Raises BadCall."""
    return _named(call.text("ref"), scene)


def _named(name: str, scene: Scene) -> Element:
    key = scene.refs.key(name)
    element = next((each for each in scene.observation.elements if each.key == key), None)
    if element is None:
        raise BadCall(words("no element of the page has this reference now: read the page again"))
    return element


def _browser_click(button: Button, count: int) -> Handler:
    def click(call: Arguments, scene: Scene) -> Outcome:
        call.refuse("modifiers")
        target = call.inner("target")
        action: Action
        if target.values.get("type") == "ref":
            action = Click(ref=_element(target, scene).ref, button=button, count=count)
        else:
            x, y = target.point()
            action = ClickAt(x=x, y=y, button=button, count=count)
        return Do((action,))

    return click


def _hover(call: Arguments, scene: Scene) -> Outcome:
    target = call.inner("target")
    if target.values.get("type") == "ref":
        return Do((Hover(ref=_element(target, scene).ref),))
    return _hover_at(scene, *target.point())


def _scroll_to(call: Arguments, scene: Scene) -> Outcome:
    """The pointer's move brings the element into view."""
    return Do((Hover(ref=_element(call.inner("target"), scene).ref),))


def _browser_scroll(call: Arguments, _: Scene) -> Outcome:
    return _scrolled(call, call.inner("target").point(), call.number("scroll_amount", 3))


def _browser_drag(call: Arguments, _: Scene) -> Outcome:
    return drag(call.inner("from").point(), call.inner("target").point())


def _form_input(call: Arguments, scene: Scene) -> Outcome:
    element, value = _element(call.inner("target"), scene), call.values.get("value")
    if element.key.role in _CHECKED:
        if not isinstance(value, bool):
            return Refuse(words("give true or false for a check box"))
        if value == ("checked" in element.states):
            return TextResult(words("It has this value already."))
        return Do((Click(ref=element.ref),))
    if value is None or isinstance(value, dict | list):
        return Refuse(words("a value is missing in the arguments"))
    text = value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
    return Do((Select(ref=element.ref, option=text) if element.options else Type(ref=element.ref, text=text),))


def _upload(call: Arguments, scene: Scene) -> Outcome:
    paths = call.values.get("paths")
    if not isinstance(paths, list) or len(paths) != 1 or not isinstance(paths[0], str):
        return Refuse(words("give one path of the files that are listed"))
    return Do((Upload(ref=_element(call.inner("target"), scene).ref, path=paths[0]),))


def _read_page(call: Arguments, scene: Scene) -> Outcome:
    """The text of the page with a reference before each control, or the rows of a group that is collapsed."""
    ref = call.text("ref", "")
    if _GROUP.fullmatch(ref):
        return Do((Expand(group=ref),))
    if ref:
        return TextResult(fenced("page", _line(_named(ref, scene), scene)))
    if call.text("filter", "") == "interactive":
        lines = (_line(element, scene) for element in scene.observation.elements if element.shown)
        return TextResult(fenced("page", cut("\n".join(lines), PAGE_CHARS)))
    by_ref = {element.ref: element for element in scene.observation.elements}

    def named(match: re.Match[str]) -> str:
        element = by_ref.get(int(match[1]))
        return f"[{scene.refs.name(element.key)}] " if element is not None else match[0]

    return TextResult(fenced("page", cut(_NUMBER.sub(named, scene.observation.text), PAGE_CHARS)))


def _page_text(_: Arguments, scene: Scene) -> Outcome:
    return TextResult(fenced("page", cut(_NUMBER.sub("", scene.observation.text), PAGE_CHARS)))


def _find(call: Arguments, scene: Scene) -> Outcome:
    """The controls that share most words with the query."""
    wanted = set(_WORD.findall(call.text("query").lower()))
    shared = [(len(wanted & _words_of(element)), element) for element in scene.observation.elements]
    found = sorted((pair for pair in shared if pair[0]), key=lambda pair: (-pair[0], pair[1].ref))[:FOUND]
    if not found:
        return TextResult(words("No control matches. Read the page, or take a screenshot."))
    return TextResult(fenced_lines("page", (_line(element, scene) for _, element in found)))


def _words_of(element: Element) -> set[str]:
    texts = (element.key.role, element.key.name, element.title, element.tag, element.value or "")
    return set(_WORD.findall(" ".join(texts).lower()))


def _line(element: Element, scene: Scene) -> str:
    value = f' = "{element.value}"' if element.value is not None else ""
    options = f" options: {', '.join(element.options)}" if element.options else ""
    states = f" {' '.join(element.states)}" if element.states else ""
    return f'[{scene.refs.name(element.key)}] {element.key.role} "{element.key.name}"{value}{states}{options}'


def _list_tabs(_: Arguments, __: Scene) -> Outcome:
    return TextResult(words("The tabs are listed."))


def _new_tab(_: Arguments, __: Scene) -> Outcome:
    return Do((NewTab(),))


def _switch_tab(call: Arguments, scene: Scene) -> Outcome:
    return Do((FocusTab(index=_tab(call, scene)),))


def _close_tab(call: Arguments, scene: Scene) -> Outcome:
    index = _tab(call, scene)
    front = any(tab.index == index and tab.active for tab in scene.observation.tabs)
    return Do((CloseTab(),) if front else (FocusTab(index=index), CloseTab()))


def _tab(call: Arguments, scene: Scene) -> int:
    wanted = str(call.values.get("tab_id"))
    for tab in scene.observation.tabs:
        if str(tab.index) == wanted:
            return tab.index
    raise BadCall(words("no tab has this id"))


BROWSER: Final[Table] = {
    **{
        name: _here(handler)
        for name, handler in {
            "navigate": navigated,
            "read_page": _read_page,
            "get_page_text": _page_text,
            "find": _find,
            "form_input": _form_input,
            "file_upload": _upload,
            "scroll_to": _scroll_to,
            "screenshot": screenshot,
            "zoom": zoom,
            "left_click": _browser_click("left", 1),
            "right_click": _browser_click("right", 1),
            "middle_click": _browser_click("middle", 1),
            "double_click": _browser_click("left", 2),
            "triple_click": _browser_click("left", 3),
            "hover": _hover,
            "mouse_move": _hover,
            "left_click_drag": _browser_drag,
            "scroll": _browser_scroll,
            "type": typed,
            "key": _key,
            "wait": _waited,
        }.items()
    },
    "list_tabs": _list_tabs,
    "new_tab": _new_tab,
    "switch_tab": _switch_tab,
    "close_tab": _close_tab,
}
