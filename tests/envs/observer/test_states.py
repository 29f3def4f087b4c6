"""States that only attributes by convention, classes or styles show: every real click changes the text, and look-alikes
have no cue."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
import pytest_asyncio
from playwright.async_api import Page

from envs.core.actions import ActionResult
from envs.core.observation import Element, Observation
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from envs.observer.page_lines import read_line, without_cues
from envs.observer.page_state import steady_text
from tests.envs.observer.state_variants import LOOKALIKES, PAGE, VARIANTS


class Watched:
    """The page of the variants under an observer."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.observer = Observer(page, ObserveSettings(timeout_s=30.0, max_chars=60_000))
        self.seen: Observation

    async def observe(self) -> None:
        self.seen = await self.observer.observe()

    def section(self, name: str) -> str:
        """The text of a section, without refs and focus."""
        return steady_text(self._section(name))

    def _section(self, name: str) -> str:
        start = self.seen.text.index(f"# {name}\n")
        end = self.seen.text.find("\n# ", start)
        return self.seen.text[start : end if end > 0 else None]

    def control(self, section: str, name: str) -> Element:
        refs = [int(ref) for ref in re.findall(r"\[(\d+)\] ", self._section(section))]
        return next(e for ref in refs if (e := self.seen.element(ref)) is not None and name in e.key.name)

    async def click(self, section: str, name: str) -> None:
        target = await self.observer.resolve(self.control(section, name).ref)
        assert not isinstance(target, ActionResult)
        point = await target.point(presses=True)
        assert not isinstance(point, ActionResult)
        await self.page.mouse.click(point.x, point.y)
        await self.observe()


@pytest_asyncio.fixture(loop_scope="session")
async def watched(page: Page) -> Watched:
    await page.set_content(PAGE)
    watched = Watched(page)
    await watched.observe()
    return watched


@pytest.mark.browser
async def test_a_click_on_each_kind_of_toggle_changes_its_line(watched: Watched) -> None:
    for variant in VARIANTS:
        before, key = watched.section(variant.name), watched.control(variant.name, variant.press).key
        assert " ".join(watched.control(variant.name, variant.press).cues) == variant.before, variant.name
        await watched.click(variant.name, variant.press)
        pressed = watched.control(variant.name, variant.press)
        assert " ".join(pressed.cues) == variant.after, variant.name
        assert pressed.key == key, variant.name
        assert watched.section(variant.name) != before, variant.name


@pytest.mark.browser
async def test_a_toggle_that_is_toggled_back_reads_as_before(watched: Watched) -> None:
    for variant in (v for v in VARIANTS if "this.classList.toggle" in v.html):
        before = watched.section(variant.name)
        await watched.click(variant.name, variant.press)
        await watched.click(variant.name, variant.press)
        assert watched.section(variant.name) == before, variant.name


@pytest.mark.browser
async def test_the_chosen_one_of_several_is_marked_before_any_click(watched: Watched) -> None:
    for section, name in (("tailwind segments", "Light"), ("css in js", "Winter"), ("inline styles", "Left")):
        assert watched.control(section, name).cues == ("selected?",), section


@pytest.mark.browser
async def test_lookalikes_of_states_are_not_marked(watched: Watched) -> None:
    for section in LOOKALIKES:
        assert "(" not in watched.section(section), section


@pytest.mark.browser
async def test_hover_and_focus_are_no_states(watched: Watched) -> None:
    for section, name in (("hovered", "Hover 2"), ("focused", "Focus 2"), ("zebra rows", "Zebra 3")):
        before = watched.section(section)
        await watched.click(section, name)
        assert watched.section(section) == before, section
    before = watched.section("script hover")
    await watched.page.hover("text=Script hover >> nth=-1")
    await watched.observe()
    assert await watched.page.evaluate("document.querySelectorAll('[style*=pink]').length") == 1
    assert watched.section("script hover") == before


@pytest.mark.browser
async def test_a_list_without_a_word_has_no_cue_although_the_walk_is_long(page: Page) -> None:
    """Groups are compared within a bound, so a list of thousands costs no more than its walk."""
    await page.set_content("".join(f"<div class='css-{n % 2}' onclick='1'>Entry {n}</div>" for n in range(3000)))
    seen = await Observer(page, ObserveSettings(timeout_s=30.0)).observe()
    assert seen.controls_total == 3000 and not any(element.cues for element in seen.elements)


LINES = [
    ('[1] button "Bold" (on?)', '[1] button "Bold"'),
    ('[2] tab "A" focused (selected?)  [3] tab "B"', '[2] tab "A" focused  [3] tab "B"'),
    ('[3] clickable "" (icon:trash-can? on?)', '[3] clickable ""'),
    (
        '[4] button "Size" = "M" collapsed (off? disabled?) options: "S" "M"',
        '[4] button "Size" = "M" collapsed options: "S" "M"',
    ),
]


@pytest.mark.parametrize(("line", "plain"), LINES)
def test_small_models_do_not_see_cues(line: str, plain: str) -> None:
    assert without_cues(line) == plain
    assert read_line(line).roles == read_line(plain).roles


@pytest.mark.parametrize(
    "text", ["Bold (on?)", '\\[1] button "Bold" (on?)', '[1] button "Bold"  (on?)', '[1] link "(on?)"']
)
def test_page_text_that_looks_like_a_cue_stays(text: str) -> None:
    assert without_cues(text) == text


def test_names_of_variants_are_distinct() -> None:
    names = sorted([*(variant.name for variant in VARIANTS), *LOOKALIKES])
    assert len(VARIANTS) >= 15 and len(LOOKALIKES) >= 10
    assert all(first != second for first, second in pairwise(names))
