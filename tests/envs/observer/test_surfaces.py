"""Drawn areas: the observation has the boxes of the area and of the controls, in the pixels of Click At."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from envs.core.observation import Observation
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer

pytestmark = pytest.mark.browser

LOG = "<script>addEventListener('click', e => document.title = e.target.id)</script>"
PAGES = {
    "canvas": "<canvas id=board width=300 height=200 aria-label=Board></canvas>",
    "drawing": "<svg id=board width=300 height=200><circle r=20 cx=150 cy=100 pointer-events=none /></svg>",
    "map": "<div id=board class='leaflet-container' style='width:300px;height:200px' onclick=1></div>",
    "picture": "<img id=board alt=Board width=300 height=200 onclick=1>",
    "plot": "<div id=board class='js-plotly plot-container' style='width:300px;height:200px' onclick=1></div>",
    "canvas in a shadow root": "<div id=board style='width:300px;height:200px'></div><script>board.attachShadow({mode: "
    "'open'}).innerHTML = '<canvas width=300 height=200></canvas>'</script>",
    "canvas of a list": "<ul><li>one<li><canvas id=board width=300 height=200></canvas></ul>",
    "canvas below text": "<p style='height:200px'>text</p><canvas id=board width=300 height=200></canvas>",
    "canvas with a listener": "<canvas id=board width=300 height=200 onclick=1></canvas>",
    "embedded object": "<object id=board data='data:text/html,x' width=300 height=200></object>",
}
"""Pages with an area `board` of 300 × 200 pixels."""
PLAIN = {
    "icons": "<button><svg width=16 height=16><path d='M0 0h9v9z'></path></svg>Go</button><svg width=24></svg>",
    "card": "<div class=card style='width:300px;height:200px' onclick=1>Card</div>",
    "logo": "<img alt=Logo width=300 height=200><a href=/map class=map-link>Map</a>",
    "hidden canvas": "<canvas width=300 height=200 style='display:none'></canvas>",
    "canvas out of view": "<canvas width=300 height=200 style='position:fixed;left:-900px'></canvas>",
}


async def observe(page: Page, html: str) -> Observation:
    await page.set_content(LOG + "<button>Save</button>" + html)
    return await Observer(page, ObserveSettings(timeout_s=30.0)).observe()


@pytest.mark.parametrize("name", PAGES)
async def test_the_middle_of_the_box_is_in_the_area(page: Page, name: str) -> None:
    seen = await observe(page, PAGES[name])
    assert len(seen.surfaces) == 1
    box = seen.surfaces[0].box
    assert (box.width, box.height) == (300, 200)
    if name != "embedded object":  # its own document gets the click
        await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
        assert await page.title() == "board"
    assert all(element.box is not None for element in seen.elements)


@pytest.mark.parametrize("name", PLAIN)
async def test_other_pages_have_neither_areas_nor_boxes(page: Page, name: str) -> None:
    seen = await observe(page, PLAIN[name])
    assert seen.surfaces == ()
    assert all(element.box is None for element in seen.elements)


async def test_a_canvas_in_a_frame_is_placed_in_the_view_of_the_page(page: Page) -> None:
    inner = "<body style='margin:0'><canvas width=300 height=200 onclick='top.document.title = 1'></canvas>"
    seen = await observe(page, f'<iframe style="margin:40px" width=400 height=300 srcdoc="{inner}"></iframe>')
    box = seen.surfaces[0].box
    await page.mouse.click(box.x + 1, box.y + 1)
    assert await page.title() == "1"
