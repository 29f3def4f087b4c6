"""Pages that are hard to observe, each with a button "Good" before and a button "Last" after the hostile part.

A case is a function body in JavaScript. It may use `host`, the element that holds the hostile part, `make(html)`, which
appends parsed markup to it, and `named(tag, ...names)`, which appends elements with these `name` attributes.
"""

from __future__ import annotations

import re
from typing import Final

from playwright.async_api import Page

from envs.core.observation import Element, Observation
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from envs.observer.target import Point, Target

FRAME: Final = """<!doctype html><style>#good,#last{position:fixed;left:0;z-index:2147483647;width:90px;height:20px}
#good{top:0}#last{top:24px}#host{margin-top:60px}</style><button id=good>Good</button><div id=host></div>
<button id=last>Last</button>"""

BUILD: Final = """(body) => {
  const find = (id) => Document.prototype.getElementById.call(document, id);
  window.hits = '';
  for (const id of ['good', 'last']) {
    find(id).addEventListener('click', () => { window.hits += id; });
  }
  const host = find('host');
  const make = (html) => { host.insertAdjacentHTML('beforeend', html); };
  const named = (parent, tag, ...names) => names.forEach((name) => {
    const one = Document.prototype.createElement.call(document, tag);
    one.setAttribute('name', name);
    Node.prototype.appendChild.call(parent, one);
  });
  new Function('host', 'make', 'named', body)(host, make, named);
}"""


async def build(page: Page, body: str) -> None:
    """Shows the page of one case."""
    await page.set_content(FRAME)
    await page.evaluate(BUILD, body)


async def observe(
    page: Page, *, effects: bool = False, boxes: bool = False, timeout_s: float = 20.0
) -> tuple[Observer, Observation]:
    """One observation with an observer of its own."""
    observer = Observer(page, ObserveSettings(timeout_s=timeout_s, effects=effects))
    return observer, await observer.observe(boxes=boxes)


def named_element(seen: Observation, name: str) -> Element | None:
    """The button of this name, if it is listed."""
    return next((one for one in seen.elements if one.key.name == name and one.key.role == "button"), None)


async def click(page: Page, observer: Observer, ref: int) -> None:
    """Clicks at the observer's point; raises AssertionError if there is none."""
    target = await observer.resolve(ref)
    assert isinstance(target, Target), target
    point = await target.point()
    assert isinstance(point, Point), point
    await page.mouse.click(point.x, point.y)


async def _ref(observer: Observer, seen: Observation, name: str) -> int | None:
    """The ref of the button of this name, which an observation of a long page may leave to `find`."""
    element = named_element(seen, name)
    if element is not None:
        return element.ref
    found = re.search(rf'\[(\d+)\] button "{name}"', await observer.find(name))
    return int(found[1]) if found else None


async def problem(page: Page, *, effects: bool = False) -> str:
    """Returns the problem with the observation of the current page; "" if both buttons are listed and clickable."""
    observer, seen = await observe(page, effects=effects, boxes=effects)
    for name in ("Good", "Last"):
        ref = await _ref(observer, seen, name)
        if ref is None:
            return f"{name} is not listed: {seen.text[:200]!r}"
        try:
            await click(page, observer, ref)
        except AssertionError as error:
            return f"{name} cannot be clicked: {error}"
    hits = await page.evaluate("window.hits")
    return "" if hits == "goodlast" else f"clicked {hits!r}"
