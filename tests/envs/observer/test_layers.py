"""Dialogs and overlays: what is on top is shown first, and what it covers is counted instead of numbered."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.async_api import Page

from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from envs.observer.target import Point, Target
from tests.conftest import Site

pytestmark = pytest.mark.browser

PAGE: Final = "<nav><a href='#h'>Home</a><button>Menu</button></nav><main><p>Page text<input aria-label=Query></main>"
BEHIND: Final = "--- behind the dialog: 3 controls, not usable until it is closed"
CENTRED: Final = "position:fixed;left:300px;top:200px;width:400px;height:300px;background:#fff"
DIM: Final = "position:fixed;inset:0;background:rgba(0,0,0,.5)"

MODAL: Final[dict[str, tuple[str, int]]] = {
    "dialog-element": ("<dialog id=d><button>OK</button></dialog><script>d.showModal()</script>", 3),
    "dialog-element-that-covers-nothing-visible": (
        "<style>#d::backdrop{background:none}</style><dialog id=d><button>OK</button></dialog><script>d.showModal()</script>",
        3,
    ),
    "bootstrap": (
        f"<div style='position:fixed;inset:0;z-index:1050;overflow:auto' class='modal show' role=dialog><div "
        f"style='width:400px;margin:100px auto;background:#fff'><button>OK</button></div></div><div style='{DIM};z-index:1040'></div>",
        3,
    ),
    "backdrop-and-dialog-beside-each-other": (
        f"<div style='{DIM};z-index:9'></div><div style='{CENTRED};z-index:10'><button>OK</button></div>",
        3,
    ),
    "material-ui": (
        f"<div role=presentation style='position:fixed;inset:0;z-index:1300'><div style='{DIM};z-index:-1'></div><div "
        "style='height:100%;display:flex;align-items:center;justify-content:center'><div role=dialog aria-modal=true "
        "style='background:#fff'><button>OK</button></div></div></div>",
        3,
    ),
    "cdk-nested": (
        "<style>.c{position:fixed;inset:0;pointer-events:none;z-index:1000}.b{position:absolute;inset:0;pointer-events:auto;"
        "background:#0005}.w{position:absolute;inset:0;display:flex;align-items:center;justify-content:center}.w>*{background:"
        "#fff;pointer-events:auto;padding:20px}</style><div class=c><div class=b></div><div class=w><div><div role=dialog>"
        "<button>Lower dialog</button></div></div></div><div class=b></div><div class=w><div><div role=dialog><button>OK</button>"
        "</div></div></div></div>",
        4,
    ),
    "headless-ui-inert-page": (
        f"<div style='position:relative;z-index:10' role=dialog aria-modal=true><div style='{DIM}' aria-hidden=true></div><div "
        "style='position:fixed;inset:0;display:flex'><div style='margin:auto;background:#fff'><button>OK</button></div></div></div>"
        "<script>for (const one of document.querySelectorAll('nav, main')) one.inert = true</script>",
        3,
    ),
    "radix-body-without-pointer-events": (
        f"<style>body{{pointer-events:none}}</style><div style='{DIM};pointer-events:auto'></div><div role=dialog style='{CENTRED};"
        "pointer-events:auto'><button>OK</button></div>",
        3,
    ),
    "bulma": (
        f"<div class='modal is-active' style='position:fixed;inset:0;z-index:40;display:flex;align-items:center;justify-content:center'>"
        "<div style='position:absolute;inset:0;background:#000b'></div><div style='position:relative;background:#fff;width:300px'>"
        "<p>Sure?</p><button>OK</button></div></div>",
        3,
    ),
    "overlay-of-a-pseudo-element": (
        f"<style>#w::before{{content:'';{DIM}}}</style><div id=w style='position:relative;z-index:5'><div style='{CENTRED}'>"
        "<button>OK</button></div></div>",
        3,
    ),
    "full-screen-menu": (
        "<div style='position:fixed;inset:0;background:#fff;z-index:99'><ul><li><a href='#a'>OK</a></ul></div>",
        3,
    ),
    "drawer-with-a-scrim": (
        f"<div style='{DIM}'></div><aside style='position:fixed;right:0;top:0;bottom:0;width:300px;background:#fff'><button>OK</button></aside>",
        3,
    ),
    "open-shadow-root": (
        "<x-m></x-m><script>document.querySelector('x-m').attachShadow({mode:'open'}).innerHTML = `<dialog><button>OK</button></dialog>`;"
        "document.querySelector('x-m').shadowRoot.firstChild.showModal()</script>",
        3,
    ),
    "closed-shadow-root-with-slot": (
        f"<x-m><button>OK</button></x-m><script>document.querySelector('x-m').attachShadow({{mode:'closed'}}).innerHTML = "
        f"`<div style='{DIM}'><div role=dialog style='{CENTRED}'><slot></slot></div></div>`</script>",
        3,
    ),
    "inside-the-application-root": (
        f"<script>const app = document.createElement('div'); app.style = 'position:fixed;inset:0;overflow:auto'; app.append("
        f"...document.querySelectorAll('nav, main')); document.body.append(app); app.insertAdjacentHTML('beforeend', \"<div style="
        f"'position:absolute;inset:0;background:#0008;z-index:3'><div style='margin:100px;background:#fff'><button>OK</button></div></div>\")</script>",
        3,
    ),
    "confirmation-in-a-dialog": (
        "<dialog id=d style='width:500px;height:400px'><button>Lower dialog</button><div style='position:absolute;inset:0;background:#0008'>"
        "<div role=alertdialog style='margin:100px;background:#fff'><button>OK</button></div></div></dialog><script>d.showModal()</script>",
        4,
    ),
    "two-dialog-elements": (
        "<dialog id=d><button>Lower dialog</button></dialog><dialog id=e><button>OK</button></dialog><script>e.showModal();"
        "e.close(); d.showModal(); e.showModal()</script>",
        4,
    ),
}
"""Markup, and the number of controls behind."""

OPEN: Final[dict[str, str]] = {
    "toast": "<div style='position:fixed;right:9px;bottom:9px' role=alert>Saved <button>OK</button></div>",
    "cookie-bar": "<div role=dialog style='position:fixed;left:0;right:0;bottom:0;background:#eee'>Cookies <button>OK</button></div>",
    "chat-bubble": "<div style='position:fixed;right:0;bottom:0;width:350px;height:500px;background:#eee;z-index:999'><button>OK</button></div>",
    "container-of-toasts": "<div style='position:fixed;inset:0;pointer-events:none;z-index:99'><button style='pointer-events:auto'>OK</button></div>",
    "menu-with-a-clear-area-behind": (
        "<div role=presentation style='position:fixed;inset:0;z-index:1300'><div style='position:fixed;inset:0;z-index:-1'></div><ul role=menu "
        "style='position:absolute;left:50px;top:200px;background:#fff'><li><button>OK</button></ul></div>"
    ),
    "popover": "<div popover id=p><button>OK</button></div><script>p.showPopover()</script>",
    "dialog-that-is-not-modal": "<dialog id=d><button>OK</button></dialog><script>d.show()</script>",
    "background-behind-the-page": (
        "<style>nav,main{position:relative}</style><canvas style='position:fixed;inset:0;width:100%;height:100%;z-index:-1'></canvas>"
        "<section style='position:relative;margin-top:1500px'><button>OK</button></section>"
        "<div role=dialog style='position:fixed;bottom:0'>Cookies</div>"
    ),
    "application-root": (
        "<script>const app = document.createElement('div'); app.style = 'position:fixed;inset:0;background:#fff'; app.append("
        "...document.querySelectorAll('nav, main')); document.body.append(app); app.insertAdjacentHTML('beforeend', "
        "'<div role=dialog><button>OK</button></div>')</script>"
    ),
    "closed-dialog": f"<div role=dialog aria-modal=true style='{DIM};display:none'></div><button>OK</button>",
    "sticky-parts": (
        "<style>nav{position:sticky;top:0;z-index:9;background:#fff}</style><div style='height:3000px'></div><footer style='position:fixed;"
        "bottom:0;left:0;width:100%'><button>OK</button></footer>"
    ),
}
"""Popups beside which the page can be used."""


async def observed(page: Page, html: str) -> tuple[Observer, list[str]]:
    await page.set_content(f"<!doctype html><body>{html}")
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    return observer, (await observer.observe()).text.splitlines()


async def hits(page: Page, observer: Observer, name: str) -> bool:
    """Whether a click on the control of this name reaches its element."""
    place = next(ref for ref, one in enumerate(observer._numbering.elements, 1) if one.key.name == name)
    target = await observer.resolve(place)
    assert isinstance(target, Target), target
    await target.call("function () { this.addEventListener('click', (event) => { this.title = 'hit'; event.preventDefault(); }); }")
    point = await target.point()
    assert isinstance(point, Point), point
    await page.mouse.click(point.x, point.y)
    return await target.call("function () { return this.title; }") == "hit"


@pytest.mark.parametrize("name", MODAL)
async def test_what_a_dialog_covers_is_one_line(page: Page, name: str) -> None:
    html, behind = MODAL[name]
    observer, lines = await observed(page, PAGE + html)
    assert lines[-1] == BEHIND.replace("3", str(behind), 1), lines
    assert [line for line in lines if "Page text" in line or "Lower dialog" in line] == []
    assert [line for line in lines if "[" in line] == [next(line for line in lines if line.startswith("[1] "))]
    assert await hits(page, observer, "OK")


@pytest.mark.parametrize("name", OPEN)
async def test_a_popup_that_covers_nothing_leaves_the_page(page: Page, name: str) -> None:
    observer, lines = await observed(page, PAGE + OPEN[name])
    assert [line for line in lines if line.startswith("--- behind")] == []
    assert {one.key.name for one in observer._numbering.elements} >= {"Home", "Menu", "Query", "OK"}, lines


async def test_the_dialog_comes_first_and_what_is_above_it_stays(page: Page) -> None:
    toast = "<div style='position:fixed;right:0;bottom:0;z-index:99;background:#fff'>Saved <button>Undo</button></div>"
    dialog = f"<div style='{DIM};z-index:5'></div><div role=dialog style='{CENTRED};z-index:6'><h2>Sure?</h2><button>OK</button></div>"
    observer, lines = await observed(page, toast + PAGE + dialog)
    assert lines == ["# Sure?", '[1] button "OK"', 'Saved  [2] button "Undo"', BEHIND]
    assert await hits(page, observer, "Undo")


async def test_frames(page: Page, site: Site) -> None:
    """A dialog in a frame covers the frame; a dialog of the page covers frames of this and of other processes."""
    inner = f"{PAGE}<dialog id=d><button>OK</button></dialog><script>d.showModal()</script>"
    site.pages = {
        "/": f"<button>Top</button><iframe width=900 height=500 src='{site.url('/in', host='localhost')}'></iframe>",
        "/in": inner,
        "/over": f"{PAGE}<iframe src='/plain'></iframe><iframe src='{site.url('/plain', host='localhost')}'></iframe>"
        "<dialog id=d><button>OK</button></dialog><script>d.showModal()</script>",
        "/plain": "<button>Framed</button>",
    }
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    await page.goto(site.url())
    lines = (await observer.observe()).text.splitlines()
    assert [line for line in lines if not line.startswith(("--- frame", "--- end"))] == [
        '[1] button "Top"',
        '[2] button "OK" focused',
        BEHIND,
    ]
    await page.goto(site.url("/over"))
    assert (await observer.observe()).text.splitlines() == ['[1] button "OK" focused', BEHIND]


async def test_the_page_returns_when_the_dialog_closes(page: Page) -> None:
    observer, lines = await observed(page, PAGE + MODAL["dialog-element"][0])
    assert lines[-1] == BEHIND
    await page.evaluate("d.close()")
    assert 'Page text  [3] textbox "Query"' in (await observer.observe()).text
