"""Parts of clickable rows: each one that can be clicked on its own has a number, and a click on it runs its handler."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.async_api import Page

from envs.core.observation import Element
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from envs.observer.target import Point, Target

pytestmark = pytest.mark.browser

HEAD: Final = """<!doctype html><style>
  .row{cursor:pointer;width:600px;padding:6px;border:1px solid #ccc}
.ic{display:inline-block;width:16px;height:16px;background:#999}
.own{cursor:pointer} .styled:hover{color:red} .row .glyph{cursor:pointer}
.vis .act{visibility:hidden} .vis:hover .act{visibility:visible;transition:visibility 0s .1s}
.fade .act{opacity:0;transition:opacity .1s} .fade:hover .act{opacity:1}
.gone .act{display:none} .gone:hover > .act{display:inline-block}
.inverse:not(:hover) .act{display:none}
.nested .act{visibility:hidden} .nested{&:hover .act{visibility:visible}}
.group .group-hover\\:visible{visibility:hidden} .group-hover\\:visible:is(:where(.group):hover *){visibility:visible}
.flat .tools{max-height:0;overflow:hidden} .flat:hover .tools{max-height:40px}
.trigger + .act{display:none} .trigger:hover + .act,.act:hover{display:inline-block !important}
.grow .act{width:0;overflow:hidden;padding:0;border:0} .grow:hover .act{width:auto}
.mega ul{display:none} .mega:hover ul{display:block}
</style><script>
window.clicked = '';
const on = (selector, name, around = document) => around.querySelectorAll(selector).forEach((one) =>
  one.addEventListener('click', (event) => { if (!window.clicked) window.clicked = name; }));
const tell = (list) => document.querySelector(list).addEventListener('click', (event) => {
  window.clicked ||= event.target.closest(list + ' > *').textContent;
});
const delegate = (list, selector, name) => document.querySelector(list).addEventListener('click', (event) => {
  if (!window.clicked && event.target.closest(selector)) window.clicked = name;
}, true);
</script>"""

Case = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""Name, markup, script, and the controls in order: how the name begins, and the handler that a click runs."""
CASES: Final[tuple[Case, ...]] = (
    (
        "items-of-a-list-that-listens-for-them",
        "<ul id=l1><li>Small</li><li><b>Large</b> size</li></ul>",
        "tell('#l1')",
        (("Small", "Small"), ("Large size", "Large size")),
    ),
    (
        "siblings-of-one-class-in-a-box-that-listens-for-them",
        "<div id=l2><span class='tab on'>Info</span><span class=tab>Reviews</span></div>",
        "tell('#l2')",
        (("Info", "Info"), ("Reviews", "Reviews")),
    ),
    (
        "a-box-that-listens-around-unlike-texts",
        "<div id=l3><b>Title</b> <i>Subtitle</i></div>",
        "on('#l3', 'box')",
        (("Title Subtitle", "box"),),
    ),
    (
        "link-without-address-by-delegation",
        "<ul id=c1><li class=row>Ann one <a data-action=edit>Edit one</a></li></ul>",
        "delegate('#c1', '[data-action]', 'edit'); on('#c1 li', 'row')",
        (("Ann one", "row"), ("Edit one", "edit")),
    ),
    (
        "icon-known-by-the-word-in-its-class",
        "<div id=c2><div class=row>Ann two <i class='ic fa-trash'></i></div></div>",
        "delegate('#c2', '.fa-trash', 'trash'); delegate('#c2', '.row', 'row')",
        (("Ann two", "row"), ("trash", "trash")),
    ),
    (
        "icon-by-delegation-with-a-title",
        "<div id=c3 class=row><i class=ic title='Star three'></i> Ann three <svg width=9 height=9></svg></div>",
        "delegate('#c3', '[title]', 'star'); on('#c3', 'row')",
        (("Star three Ann three", "row"), ("Star three", "star")),
    ),
    (
        "cursor-of-its-own",
        "<div id=c4 class=row>Ann four <span class=glyph>Pin four</span> <span>plain</span></div>",
        "delegate('#c4', '.glyph', 'pin'); on('#c4', 'row')",
        (("Ann four", "row"), ("Pin four", "pin")),
    ),
    (
        "hover-style-of-its-own",
        "<div id=c5 class=row>Ann five <span class=styled>Copy five</span></div>",
        "delegate('#c5', '.styled', 'copy'); on('#c5', 'row')",
        (("Ann five", "row"), ("Copy five", "copy")),
    ),
    (
        "row-with-only-links-in-it",
        "<div id=c6 class=row><a href='#1'>One six</a> <a href='#2'>Two six</a></div>",
        "on('#c6 a', 'link'); on('#c6', 'row')",
        (("One six Two six", "row"), ("One six", "link"), ("Two six", "link")),
    ),
    (
        "table-rows-with-inline-handlers",
        "<table><tr class=row onclick=\"clicked ||= 'row'\"><td>Ann seven<td><a class=btn>Open seven</a></table>",
        "on('.btn', 'open')",
        (("Ann seven", "row"), ("Open seven", "open")),
    ),
    (
        "closing-sign-in-a-tab",
        "<div id=c8><div role=tab class=row>Tab eight <span class='ic close'></span></div></div>",
        "delegate('#c8', '.close', 'close'); on('#c8 [role=tab]', 'tab')",
        (("Tab eight", "tab"), ("close", "close")),
    ),
    (
        "sign-with-a-listener-in-a-tree-item",
        "<div role=treeitem id=c9 class=row><span class=ic id=twisty></span> Folder nine</div>",
        "on('#twisty', 'twisty'); on('#c9', 'item')",
        (("Folder nine", "item"), ("twisty", "twisty")),
    ),
    (
        "part-of-a-link",
        "<a href='#card' id=c10 class=row style='display:block'>Card ten <span hx-post=/x>Save ten</span></a>",
        "on('#c10 span', 'save'); on('#c10', 'card')",
        (("Card ten", "card"), ("Save ten", "save")),
    ),
    (
        "rows-of-a-list-with-the-cursor",
        "<ul id=c11 style='cursor:pointer'><li>Eleven a</li><li>Eleven b</li></ul>",
        "delegate('#c11', 'li:last-child', 'b'); delegate('#c11', 'li', 'a')",
        (("Eleven a", "a"), ("Eleven b", "b")),
    ),
    (
        "in-a-shadow-root",
        "<div id=c12></div>",
        "const root = c12.attachShadow({mode: 'closed'}); root.innerHTML = `<style>div{cursor:pointer;width:400px}"
        "b{cursor:pointer}</style><div>Ann twelve <b>Drop twelve</b></div>`; on('b', 'drop', root);"
        "on('div', 'row', root)",
        (("Ann twelve", "row"), ("Drop twelve", "drop")),
    ),
    (
        "letters-that-a-font-draws-as-an-icon",
        "<div id=c13 class=row>Ann thirteen <span class='material-icons ic'>delete</span></div>",
        "delegate('#c13', '.ic', 'delete'); on('#c13', 'row')",
        (("Ann thirteen", "row"), ("delete", "delete")),
    ),
    (
        "word-named-by-its-class",
        "<div id=c14 class=row>Ann fourteen <span class=rename>Rename fourteen</span></div>",
        "delegate('#c14', '.rename', 'rename'); on('#c14', 'row')",
        (("Ann fourteen", "row"), ("Rename fourteen", "rename")),
    ),
    (
        "box-before-the-text",
        "<div id=c15 class=row><span class='ic checkbox' aria-label='Pick fifteen'></span> Ann fifteen</div>",
        "delegate('#c15', '.ic', 'pick'); on('#c15', 'row')",
        (("Pick fifteen Ann", "row"), ("Pick fifteen", "pick")),
    ),
    (
        "visible-on-hover",
        "<div id=h1 class='row vis'>Bob one <button class=act>Del one</button></div>",
        "on('#h1 .act', 'del'); on('#h1', 'row')",
        (("Bob one", "row"), ("Del one", "del")),
    ),
    (
        "faded-in-on-hover",
        "<div id=h2 class='row fade'>Bob two <i class='act ic' title='Del two'></i></div>",
        "delegate('#h2', '.act', 'del'); on('#h2', 'row')",
        (("Bob two", "row"), ("Del two", "del")),
    ),
    (
        "displayed-on-hover",
        "<div id=h3 class='row gone'>Bob three <span class='act icon-pencil'>x</span></div>",
        "on('#h3 .act', 'edit'); on('#h3', 'row')",
        (("Bob three", "row"), ("x", "edit")),
    ),
    (
        "hidden-unless-hovered",
        "<div id=h4 class=inverse style='width:400px'>Bob four <button class=act>Del four</button></div>",
        "on('#h4 .act', 'del')",
        (("Del four", "del"),),
    ),
    (
        "nested-rule",
        "<div id=h5 class=nested style='width:400px'>Bob five <span class=act><a href='#5'>Edit five</a></span></div>",
        "on('#h5 a', 'edit')",
        (("Edit five", "edit"),),
    ),
    (
        "group-of-a-utility-framework",
        "<div id=h6 class=group style='width:400px'>Bob six <button class=group-hover:visible>Del six</button></div>",
        "on('#h6 button', 'del')",
        (("Del six", "del"),),
    ),
    (
        "without-height-until-hover",
        "<div id=h7 class=flat style='width:400px'>Bob seven <div class=tools><button>Del seven</button></div></div>",
        "on('#h7 button', 'del')",
        (("Del seven", "del"),),
    ),
    (
        "beside-what-is-hovered",
        "<div style='width:400px'>Bob eight <b class=trigger>Tools</b><button class=act id=h8>Del eight</button></div>",
        "on('#h8', 'del')",
        (("Del eight", "del"),),
    ),
    (
        "toolbar-of-a-list-row",
        "<ul id=h0><li class='row gone'>Bob ten <span class=act><b data-tooltip='Archive ten'>&nbsp;</b></span></ul>",
        "delegate('#h0', '[data-tooltip]', 'archive'); on('#h0 li', 'row')",
        (("Bob ten", "row"), ("Archive ten", "archive")),
    ),
    (
        "grown-by-a-hover",
        "<div id=h8a class=grow style='width:400px'>Bob eleven <button class=act>Del eleven</button></div>",
        "on('#h8a .act', 'del')",
        (("Del eleven", "del"),),
    ),
    (
        "by-a-listener-of-the-list",
        "<ul id=h8b><li style='width:400px'>Bob twelve <button style='display:none'>Del twelve</button></li></ul>",
        "h8b.addEventListener('mouseover', (event) => { if (event.target.closest('li')) h8b.querySelector('button')."
        "style.display = ''; }); on('#h8b button', 'del')",
        (("Del twelve", "del"),),
    ),
    (
        "by-a-listener",
        "<div id=h9 style='width:400px'>Bob nine <button style='display:none'>Del nine</button></div>",
        "const show = (display) => () => { h9.lastElementChild.style.display = display; }; on('#h9 button', 'del');"
        "h9.addEventListener('mouseenter', show('')); h9.addEventListener('mouseleave', show('none'))",
        (("Del nine", "del"),),
    ),
)
"""Cases whose name tells another thing than a click: what must not be a control of its own."""
PLAIN: Final = (
    "<div class=row onclick='1'>Plain row <i class='ic fa-trash' style='pointer-events:none'></i></div>"
    "<div class=row tabindex=0 onclick='1'><i class='ic fa-home'></i> Plain home <i class='ic chevron'></i></div>"
    "<button onclick=1><i class='ic fa-trash'></i> Plain delete</button>"
    "<a href='#'><span class=own><svg width=9 height=9></svg> Plain link</span></a>"
    "<div class='row btn' onclick='1'><i class='ic fa-trash' title=Bin></i> Plain button</div>"
    "<div class=mega>Products<ul>" + "".join(f"<li><a href='#{i}'>Item {i}</a>" for i in range(20)) + "</ul></div>"
)


UNTOLD: Final = ("Del nine", "Del twelve")
"""Shown by listeners, which the page of the second test lacks."""


def controls_of(elements: tuple[Element, ...]) -> list[str]:
    return [element.key.name for element in elements]


async def ran(page: Page, observer: Observer, ref: int) -> str:
    """The handler that a click on the control runs; the pointer moves as the executor moves it."""
    await page.evaluate("window.clicked = ''")
    target = await observer.resolve(ref)
    assert isinstance(target, Target), target
    point = await target.point(page.mouse.move)
    assert isinstance(point, Point), point
    await page.mouse.click(point.x, point.y)
    return str(await page.evaluate("window.clicked"))


async def test_every_part_has_a_number_that_runs_its_handler(page: Page) -> None:
    body = "".join(f"<section>{html}</section>" for _, html, _, _ in CASES)
    scripts = "".join(f"<script>{{ {script} }}</script>" for _, _, script, _ in CASES)
    await page.set_content(HEAD + body + scripts)
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    seen = await observer.observe()
    wanted: list[tuple[str, str]] = [control for *_, controls in CASES for control in controls]
    names = controls_of(seen.elements)
    assert len(names) == len(wanted), seen.text
    assert [name for name, (start, _) in zip(names, wanted, strict=True) if not name.startswith(start)] == []
    clicked = {name: await ran(page, observer, ref) for ref, (name, _) in enumerate(wanted, 1)}
    expected: dict[str, str] = dict(wanted)
    assert {name: got for name, got in clicked.items() if got != expected[name]} == {}


async def test_what_shows_on_hover_is_marked(page: Page) -> None:
    hidden = [case for case in CASES if "Bob" in case[1]]
    await page.set_content(HEAD + "".join(case[1] for case in hidden))
    seen = await Observer(page, ObserveSettings(timeout_s=30.0)).observe()
    marked = [element.key.name for element in seen.elements if "shown-on-hover" in element.states]
    assert marked == [controls[-1][0] for *_, controls in hidden if controls[-1][0] not in UNTOLD], seen.text


async def test_decoration_and_large_menus_have_no_numbers(page: Page) -> None:
    await page.set_content(HEAD + PLAIN)
    seen = await Observer(page, ObserveSettings(timeout_s=30.0)).observe()
    assert controls_of(seen.elements) == [
        "Plain row",
        "Plain home",
        "Plain delete",
        "Plain link",
        "Bin Plain button",
    ], seen.text
    assert "Products (20 controls show on hover)" in seen.text


async def test_a_click_on_a_tab_reaches_the_link_that_it_holds(page: Page) -> None:
    """The handler of a tab may be on its link, which has the same name."""
    await page.set_content(
        "<!doctype html><title>T</title><ul role=tablist><li role=tab aria-selected=true>One</li>"
        "<li role=tab style='display:inline-block;padding:9px'>"
        "<a href='#two' onclick=\"clicked = 'tab'\">Two</a></li></ul>"
    )
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    seen = await observer.observe()
    tab = next(element.ref for element in seen.elements if (element.key.role, element.key.name) == ("tab", "Two"))
    assert await ran(page, observer, tab) == "tab"
