"""Which control a click at a point reaches, as the page itself says."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer, PageMoved
from tests.conftest import Site

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><body style="margin:0"><style>.at {{ position: absolute; width: 100px; height: 30px }}</style>
<button class=at style="left:0;top:0">Plain<b>Bold</b></button>
<label class=at style="left:0;top:40px">Label<input type=checkbox aria-label=Box></label>
<a href="#x" class=at style="left:0;top:80px">Under</a>
<div class=at style="left:50px;top:80px;background:#eee">note</div>
<div class=at style="left:0;top:120px" onclick="1">Row <button>Part</button></div>
<div class=at id=host style="left:0;top:160px"></div>
<iframe class=at style="left:0;top:200px;border:2px solid;padding:3px" srcdoc="<body style='margin:0'><button
 style='width:50px;height:20px'>Inner</button>"></iframe>
<iframe class=at style="left:0;top:250px;transform:scale(.5);transform-origin:0 0" src="{remote}"></iframe>
<script>host.attachShadow({{mode: 'closed'}}).innerHTML =
'<button style="width:90px;height:30px">Shadow</button>'</script>"""
POINTS = {
    (20, 15): "PlainBold",
    (10, 55): "Box",
    (20, 95): "Under",
    (75, 95): None,
    (2, 122): "Row",
    (45, 135): "Part",
    (20, 175): "Shadow",
    (30, 215): "Inner",
    (95, 240): None,
    (10, 255): "Remote",
    (600, 600): None,
}


async def test_the_control_on_top_at_a_point(page: Page, site: Site) -> None:
    site.pages["/remote"] = "<body style='margin:0'><button style='width:60px;height:30px'>Remote</button>"
    site.pages["/"] = PAGE.format(remote=site.url("/remote", host="localhost"))
    await page.goto(site.url())
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    seen = await observer.observe(boxes=True)
    named = {element.ref: element.key.name for element in seen.elements}
    reached = {point: await observer.control_at(*point) for point in POINTS}
    names = {point: None if ref is None else named[ref] for point, ref in reached.items()}
    assert {point: name and name.split(" Part")[0] for point, name in names.items()} == POINTS
    await page.evaluate("document.querySelector('button').style.left = '40px'")
    with pytest.raises(PageMoved):
        await observer.control_at(60, 15)
