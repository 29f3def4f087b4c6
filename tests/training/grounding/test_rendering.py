"""Pictures and boxes in real Chromium: each box is where the element is, at any scale, in shadow trees and frames."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from envs.browser.session import BrowserSession
from envs.core.errors import BadInput
from envs.core.settings import ObserveSettings, SessionSettings, Viewport
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.suites.miniwob.harness import Harness
from envs.suites.sites.fleet import Fleet
from envs.suites.sites.golden import missing_packages
from envs.suites.sites.kinds import KINDS
from tests.conftest import KeptChromium, Site
from tests.mira_command import mira
from training.grounding.controls import Control
from training.grounding.data_set import DataSettings, make_data_set, pages_of
from training.grounding.layouts import generate
from training.grounding.rendering import miniwob_server
from training.grounding.shots import Shot, Unusable, take
from training.grounding.site_pages import find_pages
from training.grounding.templates import (
    MINIWOB_SIDE,
    TRAINING_SEED,
    ViewSize,
    generated_templates,
    miniwob_templates,
    split_of,
)
from training.grpo.examples import Example, check_images, read_examples
from training.grpo.rewards import PointTarget

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><meta charset=utf-8><style>*{margin:0;padding:0;border:0}button{position:absolute}</style>
<button style="left:20px;top:10px;width:100px;height:40px">Plain</button>
<x-a style="position:absolute;left:200px;top:10px"><template shadowrootmode="open"><style>button{width:60px;height:30px;
border:0;padding:0}</style><button aria-label="Shadow"><svg width=10 height=10></svg></button></template></x-a>
<iframe style="position:absolute;left:20px;top:100px;width:200px;height:80px;border:3px solid" srcdoc='<style>
*{margin:0;padding:0;border:0}button{position:absolute;left:7px;top:9px;width:50px;height:20px}</style><button>Framed</button>'></iframe>
<input type=checkbox aria-label="Ticked" style="position:absolute;left:360px;top:200px;width:20px;height:20px">
<button style="left:20px;top:220px;width:100px;height:40px">Covered</button>
<div style="position:absolute;left:0;top:215px;width:200px;height:60px;background:#fff"></div>
<button style="left:220px;top:220px;width:80px;height:40px">Half covered</button>
<div style="position:absolute;left:265px;top:215px;width:80px;height:60px;background:#fff"></div>
<button style="left:380px;top:20px;width:40px;height:40px">Cut by the edge</button>
<button style="left:390px;top:80px;width:60px;height:40px">Beyond</button>
<button style="left:350px;top:150px;width:4px;height:4px">Tiny</button>
<button style="left:240px;top:100px;width:60px;height:20px" aria-label="???"></button>"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def two_to_one(
    kept_chromiums: dict[bool, KeptChromium], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[BrowserSession]:
    """A session of 400 x 300 CSS pixels with two pixels each."""
    if False not in kept_chromiums:
        kept_chromiums[False] = KeptChromium()
    proxy = await AllowlistProxy(Origins.parse(["127.0.0.1"])).start()
    settings = SessionSettings(viewport=Viewport(width=400, height=300), observe=ObserveSettings(timeout_s=30))
    folder = tmp_path_factory.mktemp("downloads")
    session = await kept_chromiums[False].session(settings, proxy, folder, device_scale=2.0)
    yield session
    await session.close()
    await proxy.close()


async def _shot(session: BrowserSession, site: Site, html: str, known: tuple[Control, ...] | None = None) -> Shot:
    site.pages["/"] = html
    await session.page.goto(site.url())
    return await take(session, known, 2.0)


@pytest.mark.asyncio(loop_scope="session")
async def test_boxes_are_in_pixels_of_the_file_clipped_and_on_top(two_to_one: BrowserSession, site: Site) -> None:
    shot = await _shot(two_to_one, site, PAGE)
    assert shot.size == (800, 600)
    boxes = {seen.control.name: tuple(seen.box) for seen in shot.seen}
    assert boxes == {
        "Plain": (40, 20, 240, 100),
        "Shadow": (400, 20, 520, 80),
        "Framed": (60, 224, 160, 264),  # 20 + 3 of the frame's border + 7
        "Ticked": (720, 400, 760, 440),
    }
    assert {seen.control.name: seen.text for seen in shot.seen} == {
        "Plain": True,
        "Shadow": False,
        "Framed": True,
        "Ticked": False,
    }
    kinds = {seen.control.name: seen.control.kind for seen in shot.seen}
    assert kinds["Shadow"] == "icon" and kinds["Ticked"] == "checkbox"
    assert shot.unusable[Unusable.COVERED] == 2
    assert shot.unusable[Unusable.OUTSIDE] == 2  # half of one, all but a sixth of the other
    assert shot.unusable[Unusable.SIZE] == 1 and shot.unusable[Unusable.UNKNOWN] == 1


@pytest.mark.asyncio(loop_scope="session")
async def test_a_control_that_its_page_names_otherwise_has_no_example(two_to_one: BrowserSession, site: Site) -> None:
    named = '<button data-control="c0">Save</button><button data-control="c1">Open</button><button>Stray</button>'
    known = (Control(id="c0", role="button", name="Save"), Control(id="c1", role="button", name="Close"))
    shot = await _shot(two_to_one, site, named, known)
    assert [seen.control.name for seen in shot.seen] == ["Save"]
    assert shot.unusable[Unusable.UNKNOWN] == 2


# From the middle of an example's box, the control that lies there: through shadow trees and frames, by another way
# than the renderer's. Its box, in CSS pixels.
_AT = """([x, y]) => {
  const inside = (root, x, y) => {
    const found = root.elementFromPoint(x, y);
    if (found?.shadowRoot) return inside(found.shadowRoot, x, y);
    if (found?.tagName === 'IFRAME') {
      const {left, top} = found.getBoundingClientRect();
      const inner = inside(found.contentDocument, x - left, y - top);
      return inner && [inner[0], inner[1] + left, inner[2] + top, inner[3] + left, inner[4] + top];
    }
    const control = found?.closest('[data-control]');
    if (!control) return null;
    const {left, top, right, bottom} = control.getBoundingClientRect();
    const label = control.closest('label') ?? control;
    return [control.getAttribute('aria-label') ?? label.textContent.trim(), left, top, right, bottom];
  };
  return inside(document, x, y);
}"""


@pytest.mark.asyncio(loop_scope="session")
async def test_a_data_set_continues_and_each_of_its_boxes_is_what_the_instruction_names(
    shared_chromium: None, chromium: Browser, tmp_path: Path, site: Site
) -> None:
    out, settings = tmp_path / "set", DataSettings(seed=5, per_page=30)
    templates, sizes = generated_templates(3), (ViewSize(800, 600, 1), ViewSize(400, 700, 1.5))
    begun: list[int] = []
    await make_data_set(out, pages_of(templates[:1], sizes, 1), settings, workers=1, watch=begun.append)
    before = {file.name: file.stat().st_mtime_ns for file in (out / "pages").iterdir()}
    pages, continued = pages_of(templates, sizes, 1), list[int]()
    summary = await make_data_set(out, pages, settings, workers=2, watch=continued.append)
    assert begun[0] == 0 and continued[0] == 2 and continued[-1] == 6
    assert all((out / "pages" / name).stat().st_mtime_ns == written for name, written in before.items())
    assert (summary.templates, summary.pages, summary.failed) == (3, 6, {})
    assert summary.boxes >= summary.examples > 20 and sum(summary.by_asks.values()) == summary.examples
    with pytest.raises(BadInput, match="holds a data set with other settings of seed: restore"):
        await make_data_set(out, pages, DataSettings(seed=6, per_page=30), watch=begun.append)

    examples = [example for file in out.glob("*.jsonl") for example in read_examples(file)]
    check_images(examples)
    assert len(examples) == summary.examples
    for page in pages:
        shown = [each for each in examples if each.name.startswith(f"{page.id}/")]
        assert shown and {each.facts and each.facts.split for each in shown} == {split_of(page.template, 5)}
        opened = await chromium.new_page(
            viewport={"width": page.size.width, "height": page.size.height}, device_scale_factor=page.size.scale
        )
        generated = generate(5, int(page.template.page), f"{page.variant} {page.size}")
        site.pages["/"] = generated.html
        await opened.goto(site.url())
        for example in shown:
            assert isinstance(example.target, PointTarget) and example.facts is not None
            box, scale = example.target.region, page.size.scale
            name, *edges = await opened.evaluate(_AT, [box.centre.x / scale, box.centre.y / scale])
            assert f'"{name}"' in example.facts.subject or example.facts.asks == "function"
            wide = [max(0, edges[0]), max(0, edges[1]), min(page.size.width, edges[2]), min(page.size.height, edges[3])]
            assert box == pytest.approx([edge * scale for edge in wide], abs=1)
        await opened.close()


# From the middle of an example's box, the control that lies there, by its visible text or its label, and its box in CSS
# pixels.
_NAMED = """([x, y]) => {
  const control = document.elementFromPoint(x, y)?.closest('a, button, input, select, textarea, [role], [tabindex]');
  if (!control) return null;
  const {left, top, right, bottom} = control.getBoundingClientRect();
  const labels = [...(control.labels ?? [])].map(label => label.textContent);
  const names = [control.innerText, control.value, control.title, control.alt, control.getAttribute('aria-label'),
    control.placeholder, control.querySelector?.('img')?.alt, ...labels];
  return [names.filter(Boolean).map(name => name.trim().replace(/\\s+/g, ' ')), left, top, right, bottom];
}"""


async def _check_boxes(page: Page, examples: Sequence[Example], size: ViewSize) -> None:
    """Each example whose control is named by its own words has the box of that control on *page*."""
    checked = 0
    for example in examples:
        assert isinstance(example.target, PointTarget) and example.facts is not None
        if example.facts.asks != "name" or example.facts.subject.endswith(" area"):  # clickable by script alone
            continue
        box = example.target.region
        found = await page.evaluate(_NAMED, [box.centre.x / size.scale, box.centre.y / size.scale])
        assert found is not None, example.facts.subject
        names, *edges = found
        assert any(f'"{name}"' in example.facts.subject for name in names), (names, example.facts.subject)
        wide = [max(0, edges[0]), max(0, edges[1]), min(size.width, edges[2]), min(size.height, edges[3])]
        assert box == pytest.approx([edge * size.scale for edge in wide], abs=1)
        checked += 1
    assert checked > 0


@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_of_miniwob_is_zoomed_and_its_boxes_are_its_controls(
    shared_chromium: None, chromium: Browser, tmp_path: Path
) -> None:
    size, settings = ViewSize(800, 600, 1), DataSettings(seed=3, per_page=30)
    (template,) = (each for each in miniwob_templates() if each.page == "click-button")
    summary = await make_data_set(tmp_path / "set", pages_of([template], [size], 1), settings, watch=lambda _: None)
    assert summary.failed == {} and summary.by_source == {"miniwob": summary.examples} and summary.examples > 0
    examples = [example for file in (tmp_path / "set").glob("*.jsonl") for example in read_examples(file)]
    check_images(examples)
    assert {example.facts and example.facts.template for example in examples} == {template.id}
    zoomed = size.zoomed(MINIWOB_SIDE)
    assert zoomed == ViewSize(400, 300, 2), "the shorter side keeps at least 260 CSS pixels"
    opened = await chromium.new_page(
        viewport={"width": zoomed.width, "height": zoomed.height}, device_scale_factor=zoomed.scale
    )
    with miniwob_server() as server:
        await Harness(opened, server).start("click-button", TRAINING_SEED + 997 * settings.seed)
        await _check_boxes(opened, examples, zoomed)
    await opened.close()


@pytest.mark.skipif(bool(missing_packages("forum")), reason="the extra `sites` is not installed")
@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_of_a_site_is_rendered_through_its_own_address(
    shared_chromium: None, kept_chromiums: dict[bool, KeptChromium], tmp_path: Path
) -> None:
    size, settings = ViewSize(1280, 800, 1), DataSettings(seed=3, per_page=30)
    origin, fleet = KINDS["forum"].origin, Fleet(tmp_path / "sites")
    try:
        await fleet.ready(["forum"])
        routes = {origin: fleet["forum"].address}
        template, *_ = await find_pages("forum", fleet["forum"].address)
        pages = pages_of([template], [size], 1)
        summary = await make_data_set(tmp_path / "set", pages, settings, watch=lambda _: None, sites=routes)
        assert summary.failed == {} and summary.by_source == {"sites": summary.examples} and summary.examples > 0
        examples = [example for file in (tmp_path / "set").glob("*.jsonl") for example in read_examples(file)]
        check_images(examples)
        proxy = await AllowlistProxy(Origins.parse([origin])).start()
        proxy.routes = dict(routes)
        view = SessionSettings(viewport=Viewport(width=size.width, height=size.height))
        session = await kept_chromiums[False].session(view, proxy, tmp_path, device_scale=size.scale)
        await session.page.goto(template.page)
        await _check_boxes(session.page, examples, size)
        await session.close()
        await proxy.close()
    finally:
        await fleet.close()


def test_the_command_renders_pages_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two templates in one view; the same command with a third view renders that alone."""
    monkeypatch.chdir(tmp_path)
    words = ("data", "grounding", "set", "--sources", "generated", "--templates", "2", "--workers", "1")
    assert mira(monkeypatch, *words, "--sizes", "800x600", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["templates"], first["pages"], first["failed"]) == (2, 2, {}) and first["examples"] > 0
    assert json.loads(Path("set/summary.json").read_text()) == first
    examples = [example for file in Path("set").glob("*.jsonl") for example in read_examples(file)]
    check_images(examples)
    assert len(examples) == first["examples"] == sum(first["by_split"].values())
    before = {file.name: file.stat().st_mtime_ns for file in Path("set/pages").iterdir()}
    assert mira(monkeypatch, *words, "--sizes", "800x600,400x700@1.5") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "page templates 2" in shown and "pages × sizes 4" in shown and "examples in set: " in shown
    after = {file.name: file.stat().st_mtime_ns for file in Path("set/pages").iterdir()}
    assert len(after) == 4 and before.items() <= after.items()
