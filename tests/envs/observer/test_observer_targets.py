"""Resolving a ref or key to a live element, and reading text that is not shown."""

from __future__ import annotations

import asyncio
import io
import re

import pytest
from playwright.async_api import Page

from envs.core.actions import ActionResult, Status
from envs.core.errors import PageCrashed, PageHung
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from envs.observer.set_of_marks import marked
from envs.observer.target import Target
from tests.conftest import Site
from tests.timing import HANG_S

pytestmark = pytest.mark.browser

ROWS = "".join(
    f"<tr><td><input type=checkbox aria-label='Pick {i}'><td>order {i}<td><button>Edit</button>" for i in range(300)
)
TABLE = f"<h1>Admin</h1><table>{ROWS}</table><footer>The end</footer>"


async def observed(page: Page, html: str = "", **settings: object) -> Observer:
    if html:
        await page.set_content(html)
    observer = Observer(page, ObserveSettings(**{"timeout_s": 30.0, **settings}))  # type: ignore[arg-type]
    await observer.observe()
    return observer


async def text_of(target: Target | ActionResult) -> object:
    assert isinstance(target, Target)
    return await target.call("function () { return this.id; }")


async def test_a_ref_resolves_to_its_element(page: Page) -> None:
    observer = await observed(page, "<button id=a>A</button><input id=b type=email required aria-label=B>")
    target = await observer.resolve(2)
    assert isinstance(target, Target)
    assert (target.tag, target.type, target.role, target.states) == ("input", "email", "textbox", ("required",))
    assert await text_of(target) == "b"


@pytest.mark.parametrize("ref", [0, -1, 3, 10**9])
async def test_a_number_that_was_not_shown(page: Page, ref: int) -> None:
    observer = await observed(page, "<button>A</button><button>B</button>")
    result = await observer.resolve(ref)
    assert isinstance(result, ActionResult) and result.status is Status.NO_SUCH_REF


RERENDERINGS = [
    ("kept", "<button id=old>Save</button>", "1", "old"),
    (
        "same-button-created-again",
        "<button id=k>Save</button>",
        "document.body.innerHTML = '<p>New<p><button id=k>Save</button>'",
        "k",
    ),
    ("gone", "<button>Save</button>", "document.body.innerHTML = ''", Status.STALE),
    ("renamed", "<button>Save</button>", "document.querySelector('button').textContent = 'Delete'", Status.STALE),
    (
        "replaced-by-another",
        "<button>Save</button>",
        "document.body.innerHTML = '<button>Delete</button>'",
        Status.STALE,
    ),
    ("other-kind", "<button>Save</button>", "document.body.innerHTML = '<a href=/x>Save</a>'", Status.STALE),
    (
        "two-that-fit",
        "<button>Save</button>",
        "document.body.innerHTML = '<button>Save</button> or <button>Save</button>'",
        Status.AMBIGUOUS,
    ),
    (
        "distinguished-by-their-row",
        "<table><tr><td>ann<td><button id=x>Edit</button><tr><td>bob<td><button id=y>Edit</button></table>",
        "document.body.innerHTML = '<table><tr><td>zoe<td><button id=z>Edit</button><tr><td>ann<td>"
        "<button id=x>Edit</button></table>'",
        "x",
    ),
]


@pytest.mark.parametrize(("before", "change", "found"), [c[1:] for c in RERENDERINGS], ids=[c[0] for c in RERENDERINGS])
async def test_rerendering(page: Page, before: str, change: str, found: str | Status) -> None:
    observer = await observed(page, before)
    await page.evaluate(f"() => {{ {change} }}")
    result = await observer.resolve(1)
    if isinstance(found, Status):
        assert isinstance(result, ActionResult) and result.status is found
    else:
        assert await text_of(result) == found


async def test_a_ref_of_a_page_that_was_left_is_stale(page: Page, site: Site) -> None:
    site.pages = {"/": "<button>A</button>", "/b": "<button>B</button>"}
    await page.goto(site.url())
    observer = await observed(page)
    await page.goto(site.url("/b"))
    result = await observer.resolve(1)
    assert isinstance(result, ActionResult) and result.status is Status.STALE


POINTS = [
    ("on-top", "<button>A</button>", None),
    ("far-below", "<div style='height:5000px'></div><button>A</button>", None),
    ("in-a-scroller", "<div style='height:90px;overflow:auto'><p style='height:900px'><button>A</button></div>", None),
    (
        "covered",
        "<button>A</button><div style='position:fixed;left:0;top:0;width:300px;height:99px'>Wall</div>",
        Status.COVERED,
    ),
    ("disabled", "<button disabled>A</button>", Status.DISABLED),
    ("checkbox-behind-its-label", "<label><input type=checkbox style='display:none'>A</label>", None),
    (
        "partly-covered",
        "<button style='width:200px'>A</button><i style='position:fixed;left:50px;top:0;width:90px;height:60px'></i>",
        None,
    ),
]


@pytest.mark.parametrize(("html", "status"), [c[1:] for c in POINTS], ids=[c[0] for c in POINTS])
async def test_a_click_at_the_point_reaches_the_element(page: Page, html: str, status: Status | None) -> None:
    observer = await observed(page, html)
    await page.evaluate(
        "addEventListener('click', e => (window.got = (e.target.closest('label') ?? e.target).innerText))"
    )
    target = await observer.resolve(1)
    assert isinstance(target, Target)
    point = await target.point()
    if status is not None:
        assert isinstance(point, ActionResult) and point.status is status
        return
    assert not isinstance(point, ActionResult), point
    await page.mouse.click(*point)
    assert str(await page.evaluate("window.got")).strip() == "A"


async def test_points_in_frames_of_both_kinds(page: Page, site: Site) -> None:
    button = "<p style='height:700px'>x</p><button onclick=\"top.postMessage(document.URL, '*')\">In</button>"
    same, cross = site.url("/in"), site.url("/in", host="localhost")
    tall = "<p style='height:900px'>y</p>"
    site.pages = {"/": f"{tall}<iframe src='{same}'></iframe>{tall}<iframe src='{cross}'></iframe>", "/in": button}
    await page.goto(site.url())
    await page.evaluate("() => { window.got = []; addEventListener('message', e => got.push(e.data)) }")
    observer = await observed(page)
    for ref in (1, 2):
        target = await observer.resolve(ref)
        assert isinstance(target, Target)
        point = await target.point()
        assert not isinstance(point, ActionResult), point
        await page.mouse.click(*point)
        await page.wait_for_function("n => window.got.length === n", arg=ref)
    assert await page.evaluate("window.got") == [same, cross]


@pytest.mark.parametrize(
    "style", ["transform:scale(.4);transform-origin:0 0", "zoom:.5", "transform:scale(1.5) translate(90px)"]
)
async def test_points_in_frames_that_are_drawn_at_another_size(page: Page, site: Site, style: str) -> None:
    frame = f"<iframe style='{style};border:5px solid' width=800 height=500 src='{{}}'></iframe>"
    button = "<button style='position:absolute;left:500px;top:400px;width:60px;height:20px'>In</button>"
    script = "<script>onclick = e => top.postMessage(e.target.innerText, '*')</script>"
    for host in ("127.0.0.1", "localhost"):
        site.pages = {"/": frame.format(site.url("/in", host=host)), "/in": button + script}
        await page.goto(site.url())
        await page.evaluate("addEventListener('message', e => window.got = e.data)")
        observer = await observed(page)
        target = await observer.resolve(1)
        assert isinstance(target, Target)
        point = await target.point()
        assert not isinstance(point, ActionResult), point
        await page.mouse.click(*point)
        await page.wait_for_function("window.got === 'In'", timeout=HANG_S * 1000)


async def test_rows_collapse_viewport_first_and_none_is_lost(page: Page) -> None:
    await page.set_content(TABLE)
    observer = Observer(page, ObserveSettings(max_chars=4000, timeout_s=30))
    seen = await observer.observe()
    lines = seen.text.splitlines()
    assert len(seen.text) <= 4000
    assert lines[0] == "# Admin" and lines[-1] == "The end"
    marker = re.fullmatch(r"… g1: row ×300, shown 1-(\d+) \(expand g1 or find text\)", lines[-2])
    assert marker and int(marker[1]) > 20
    assert seen.controls_total == 600

    found = (await observer.find("ORDER 299")).splitlines()
    assert found[0] == "1 line holds 'ORDER 299':"
    refs = [int(ref) for ref in re.findall(r"\[(\d+)\]", found[1])]
    target = await observer.resolve(refs[0])
    assert isinstance(target, Target) and target.key.name == "Pick 299"
    element = seen.element(refs[0])
    assert element is not None and element.key == target.key

    expanded = (await observer.expand("g1", 290)).splitlines()
    assert expanded[0] == "g1: row 290-300 of 300" and len(expanded) == 12
    assert await observer.find("nowhere") == "no line holds 'nowhere'"
    assert "no group" in await observer.expand("g9", 1)


async def test_scrolling_moves_the_shown_rows(page: Page) -> None:
    await page.set_content(TABLE)
    observer = Observer(page, ObserveSettings(max_chars=4000, timeout_s=30))
    await page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    seen = await observer.observe()
    shown = re.search(r"shown (\d+)-(\d+)", seen.text)
    assert shown and 100 < int(shown[1]) < int(shown[2]) < 200


async def test_long_text_outside_groups_is_counted_too(page: Page) -> None:
    paragraphs = "".join(f"<section><h2>Part {i}</h2><p>{'word ' * 60}</p></section>" for i in range(30))
    await page.set_content(paragraphs)
    observer = Observer(page, ObserveSettings(max_chars=3000, timeout_s=30))
    seen = await observer.observe()
    assert len(seen.text) <= 3000
    marker = re.search(r"… g1: line ×\d+, shown none \(expand g1 or find text\)", seen.text)
    assert marker
    assert "# Part 29" in await observer.expand("g1", 50) + await observer.find("Part 29")


async def test_the_page_is_left_as_it_was(page: Page, site: Site) -> None:
    site.pages = {"/": TABLE + "<script>document.body.addEventListener('click', () => 1)</script>"}
    await page.goto(site.url())
    await page.evaluate(
        "() => { window.before = Object.getOwnPropertyNames(window).length; window.changes = 0;"
        "new MutationObserver(l => (changes += l.length)).observe(document, {subtree: true, childList: true,"
        "attributes: true, characterData: true}) }"
    )
    observer = await observed(page, max_chars=2000)
    await observer.find("order 200")
    await observer.resolve(3)
    changed = await page.evaluate("[changes, Object.getOwnPropertyNames(window).length - before]")
    assert changed == [0, 2]  # the new names are the test's own two


HOSTILE = """<button>Pay</button><p>text</p><script>
const evil = () => { throw new Error('caught you') };
Array.prototype.map = Array.prototype.push = JSON.stringify = evil;
for (const name of ['textContent', 'firstChild', 'nodeType', 'parentNode'])
  Object.defineProperty(Node.prototype, name, { get: evil });
Element.prototype.getAttribute = Element.prototype.getBoundingClientRect = evil;
window.getComputedStyle = evil; WeakMap.prototype.get = evil;
Object.defineProperty(window, 'mira', { get: evil, set: evil });
</script>"""


async def test_overridden_built_ins_change_nothing(page: Page, site: Site) -> None:
    site.pages = {"/": HOSTILE}
    await page.goto(site.url())
    observer = Observer(page, ObserveSettings(timeout_s=30))
    assert (await observer.observe()).text.splitlines() == ['[1] button "Pay"', "text"]
    target = await observer.resolve(1)
    assert isinstance(target, Target) and not isinstance(await target.point(), ActionResult)


async def test_looking_twice_gives_the_same_digest_and_a_change_another(page: Page) -> None:
    await page.set_content(TABLE + "<input id=i aria-label=I>")
    observer = Observer(page, ObserveSettings(max_chars=2000, timeout_s=30))
    first = (await observer.observe()).digest
    assert re.fullmatch("[0-9a-f]{16}", first)
    assert (await observer.observe()).digest == first
    await page.evaluate("i.value = 'typed'")
    assert (await observer.observe()).digest != first


async def test_every_document_is_read_anew(page: Page, site: Site) -> None:
    """Symptom: after a few navigations elements with listeners came back as broken nodes, or the renderer crashed."""
    for i in range(6):
        site.pages[f"/{i}"] = f"<div id=d>Item {i}</div><script>d.addEventListener('click', () => 1)</script>"
    observer = Observer(page, ObserveSettings(timeout_s=30))
    for i in range(6):
        await page.goto(site.url(f"/{i}"))
        assert (await observer.observe()).text == f'[1] clickable "Item {i}"'


async def test_a_busy_page_is_hung_within_the_bound(page: Page) -> None:
    observer = await observed(page, "<p>x", timeout_s=1.0)
    await page.evaluate("() => { setTimeout(() => { for (;;); }, 0) }")
    with pytest.raises(PageHung):
        await observer.observe()


async def test_a_crashed_renderer_is_reported(page: Page) -> None:
    observer = await observed(page, "<p>x", timeout_s=10.0)
    async with page.expect_event("crash", timeout=HANG_S * 1000):
        going = asyncio.ensure_future(page.goto("chrome://crash"))
    going.cancel()  # the answer died with the renderer
    await asyncio.wait({going})
    with pytest.raises(PageCrashed):
        await observer.observe()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "total"),
    [
        ("b.innerHTML = Array.from({length: 100000}, (_, i) => `<button>Button ${i}</button>`).join('')", None),
        (
            "for (let i = 0; i < 400; i++) b = b.appendChild(document.createElement('p')); b.innerHTML = '<button>'",
            1,
        ),
    ],
    ids=["many-buttons", "deep"],
)
async def test_huge_pages_end_in_the_bound(page: Page, make: str, total: int | None) -> None:
    await page.set_content("<body>")
    await page.evaluate(f"() => {{ let b = document.body; {make}; document.body.offsetHeight }}")
    observer = Observer(page, ObserveSettings(timeout_s=40.0))
    seen = await observer.observe()
    assert len(seen.text) < 16_500
    if total is None:
        assert "more parts of this page were not read" in seen.text
        found = await observer.find("Button 99999")
        assert 'button "Button 99999"' in found or "were not searched" in found, "never silently incomplete"
    else:
        assert seen.controls_total == total


async def test_marks_are_drawn_on_the_picture_only(page: Page) -> None:
    from PIL import Image

    await page.set_content("<button style='position:absolute;left:100px;top:50px;width:80px;height:40px'>A</button>")
    seen = await Observer(page, ObserveSettings(timeout_s=30)).observe(screenshot=True)
    assert seen.screenshot is not None
    with Image.open(io.BytesIO(marked(seen.screenshot, seen.elements, seen.viewport))) as image:
        assert image.size == (1280, 800)
        assert image.getpixel((179, 70)) == (31, 119, 180)  # the right edge, in the colour of ref 1
        assert image.getpixel((300, 300)) == (255, 255, 255)
