"""A seeded generator of hostile pages: trees of unusual elements whose names shadow DOM properties."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from playwright.async_api import Page

from tests.envs.observer.hostile_cases import MEMBERS, OF_DOCUMENT


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


HTML: Final = _words(
    "form form form input input select textarea button label a img iframe object embed table tr td div div span p svg "
    "details summary dialog fieldset legend option optgroup datalist output meter slot ul li map area video canvas "
    "frameset frame template x-odd math h2 br"
)
CONTAINERS: Final = frozenset(
    _words("form div span table tr td button label li ul p details fieldset x-odd slot dialog")
)
ROLES: Final = _words(
    "row grid table gridcell button link checkbox combobox listbox option tab menuitem textbox dialog heading none "
    "presentation rowgroup treeitem slider constructor __proto__ \ud800"
)
STYLES: Final = _words(
    "display:table-row display:table-cell display:contents display:inline-block cursor:pointer height:0 opacity:0 "
    "overflow:hidden visibility:hidden content-visibility:auto position:absolute zoom:0.1 transform:scale(0)"
)
TEXTS: Final = (
    *("text", "a\ud800b", "\udc00", "\0", "[3] button", "… g1: row", "\u202eabc", "\u00010\u0005"),
    "\\" * 50 + "[",
)
ATTRIBUTES: Final = _words(
    "aria-label aria-labelledby aria-owns aria-hidden aria-checked aria-expanded aria-disabled title placeholder alt "
    "href src for form type list tabindex contenteditable onclick draggable inert hidden slot open multiple size "
    "popover usemap value readonly required"
)
VALUES: Final = (
    *("", "0", "-1", "true", "false", "e1", "e2 e3", "e1 e1 e1", "x\ud800", "checkbox", "password", "#"),
    "?" * 50,
)
NAMESPACES: Final = ("http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML", "", "urn:x")

# Names of everything that a node, a form, a frameset, the document or the window has, on any of their prototypes.
NAMES: Final = """() => {
  const found = new Set();
  for (const kind of [Node, Element, HTMLElement, HTMLFormElement, HTMLFrameSetElement, HTMLInputElement, Document,
                      HTMLDocument, EventTarget, Window]) {
    for (const name of Object.getOwnPropertyNames(kind.prototype)) found.add(name);
  }
  for (const name of Object.getOwnPropertyNames(window)) if (/^[a-z]/.test(name)) found.add(name);
  return [...found];
}"""

# Appends the tree to the element `host` without calling anything that the tree may shadow.
GROW: Final = """(tree) => {
  const call = (kind, name, object, ...given) => kind.prototype[name].apply(object, given);
  const host = call(Document, 'getElementById', document, 'host');
  const attempt = (run) => { try { return run(); } catch { return null; } };
  const stack = [[host, tree]];
  while (stack.length) {
    const [parent, [tag, space, attributes, text, shadow, children]] = stack.pop();
    const element = space === null ? call(Document, 'createElement', document, tag)
      : call(Document, 'createElementNS', document, space || null, tag);
    for (const [name, value] of attributes) attempt(() => call(Element, 'setAttribute', element, name, value));
    attempt(() => call(Node, 'appendChild', parent, element));
    if (text) call(Node, 'appendChild', element, call(Document, 'createTextNode', document, text));
    const root = shadow && attempt(() => call(Element, 'attachShadow', element, { mode: shadow }));
    children.forEach((child, i) => stack.push([root && i % 2 ? root : element, child]));
  }
}"""


def tree(seed: int, names: Sequence[str], *, size: int = 60) -> list[Any]:
    """The page of this seed: `[tag, namespace or None, attributes, text, shadow mode or None, children]`."""
    chance = random.Random(seed)
    root: list[Any] = ["div", None, [["id", "e0"]], "", None, []]
    made = [root]
    for number in range(1, size):
        element = _element(chance, names, number)
        if element[0] == "form":  # whose fields shadow what is asked of it
            shadows = chance.sample(MEMBERS, 20)
            element[2].append(["role", chance.choice(("row", "button", "combobox", "none"))])
            element[5] += [["input", None, [["name", name], ["type", "hidden"]], "", None, []] for name in shadows]
        parent = root if chance.random() < 0.3 else chance.choice(made)
        parent[5].append(element)
        if element[0] in CONTAINERS or chance.random() < 0.1:
            made.append(element)
    return root


def _element(chance: random.Random, names: Sequence[str], number: int) -> list[Any]:
    space = chance.choice(NAMESPACES) if chance.random() < 0.15 else None
    tag = chance.choice(HTML)
    attributes = [["id", f"e{number}"]] if chance.random() < 0.5 else [["id", chance.choice(names)]]
    if chance.random() < 0.8:
        attributes.append(["name", chance.choice(OF_DOCUMENT if chance.random() < 0.2 else names)])
    if chance.random() < 0.4:
        attributes.append(["role", chance.choice(ROLES)])
    if chance.random() < 0.3:
        attributes.append(["style", chance.choice(STYLES)])
    attributes += [[chance.choice(ATTRIBUTES), chance.choice(VALUES)] for _ in range(chance.randrange(4))]
    text = chance.choice(TEXTS) if chance.random() < 0.4 else ""
    shadow = chance.choice(("open", "closed")) if chance.random() < 0.1 else None
    return [tag, space, attributes, text, shadow, []]


async def dom_names(page: Page) -> list[str]:
    """The names, sorted, of the browser that runs the tests."""
    return sorted(await page.evaluate(NAMES))
