"""Names of controls: the accessible name computation, and what an observation makes of icons, titles and long rows."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from envs.core.observation import Observation
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from envs.observer.page_lines import read_line
from envs.observer.program import program
from envs.observer.world import PARTS
from tests.envs.observer.name_cases import page_of_cases

pytestmark = pytest.mark.browser

_NAMES = """elements => elements.map((element) => {
  const tag = mira.tagOf(element);
  return mira.statedName(element, tag, mira.roleOf(element, tag), new mira.Naming(160));
})"""


async def test_names_follow_the_accessible_name_computation(page: Page) -> None:
    html, names = page_of_cases()
    await page.set_content(html)
    await page.evaluate(program(PARTS, "tagOf, roleOf, statedName, Naming"))
    found = await page.eval_on_selector_all("[data-x]", _NAMES)
    assert dict(zip(names, found, strict=True)) == names


async def observe(page: Page, html: str) -> Observation:
    await page.set_content(f"<!doctype html>{html}")
    return await Observer(page, ObserveSettings(timeout_s=30)).observe()


PICTURES = """
.drawn { display: inline-block; width: 9px; height: 9px }
.star { background-image: url(http://127.0.0.1:9/i/star.png?v=2) }
.bin { mask-image: url(http://127.0.0.1:9/i/trash-can-hover.svg) }
.before::before { content: url(http://127.0.0.1:9/i/icon-send.svg) }
.sheet { background-image: url(http://127.0.0.1:9/i/sprite-small.png) }
.data { background-image: url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>") }
"""
"""Nothing answers there: names do not depend on loaded pictures."""

LINES = [
    # A title that tells controls apart is shown; one that the name holds already is not.
    ("<button title='Bold text'>Ab</button>", '[1] button "Ab" title "Bold text"'),
    ("<button title='bold'>Bold text</button>", '[2] button "Bold text"'),
    ("<button data-bs-original-title='Small caps'>Ab</button>", '[3] button "Ab" title "Small caps"'),
    (
        "<input type=checkbox aria-label=All title='Select all' checked>",
        '[4] checkbox "All" checked title "Select all"',
    ),
    ("<button data-tooltip=Settings></button>", '[5] button "Settings"'),
    ("<button title='say \"[7]\"'>Q</button>", '[6] button "Q" title "say \\"\\[7]\\""'),
    # Ligatures and private-use characters are icons, no words.
    ("<button><i class=mi>account_balance_wallet</i> Wallet</button>", '[7] button "Wallet"'),
    ("<button><i class=mi>account_balance_wallet</i></button>", '[8] button "icon: account balance wallet"'),
    ("<button><i class=mi aria-hidden=true>delete</i></button>", '[9] button "icon: delete"'),
    ("<button title=Bin><i class=mi>delete</i></button>", '[10] button "Bin"'),
    ("<button>\uf015 Home</button>", '[11] button "Home"'),
    ("<button><i class='fa fa-trash-o'>\uf014</i></button>", '[12] button "icon: trash o"'),
    (
        "<button><svg width=9 height=9 data-testid=DeleteIcon><path d='M0 0h9'/></svg></button>",
        '[13] button "icon: delete"',
    ),
    ("<button><img width=9 height=9 src=/i/icon-search.svg></button>", '[14] button "icon: search"'),
    ("<p><i class=mi>check_circle</i> Paid</p>", "Paid"),
    ("<p><i class=mi>check_circle</i></p>", 'icon "check circle"'),
    ("<p>\uf015\uf016 Text</p>", "Text"),
    ("<p>snake_case <code>user_name</code> home</p>", "snake_case user_name home"),
    ("<a href=/cart/><i class='fa fa-shopping-basket'>\uf291</i></a>", '[15] link "cart"'),
    ("<a href='javascript:void(0)'><i class='fa fa-bell'>\uf0f3</i></a>", '[16] link "icon: bell"'),
    # A colour names a control only if nothing else does.
    (
        "<div onclick=1 class='toggle-switch' style='background:#123456;width:9px;height:9px'></div>",
        '[17] clickable "toggle switch"',
    ),
    (
        "<div onclick=1 class=css-1a2b style='background:#123456;width:9px;height:9px'></div>",
        '[18] clickable "rgb(18,52,86)"',
    ),
    # Pictures of style sheets are cues: the name of their file, unless it names no single icon.
    ("<button class='drawn star'></button>", '[19] button "" (icon:star?)'),
    ("<button><span class='drawn bin'></span></button>", '[20] button "" (icon:trash-can?)'),
    ("<button class=before></button>", '[21] button "" (icon:send?)'),
    ("<button class='drawn star' aria-label=Rate></button>", '[22] button "Rate"'),
    ("<button class='drawn sheet'></button>", '[23] button ""'),
    ("<button class='drawn data'></button>", '[24] button ""'),
    # Pieces of a line are apart where they are drawn apart.
    ("<p><b>Gonzalez</b><b style='margin-left:9px'>Conversation</b></p>", "Gonzalez Conversation"),
    ("<p><b style='display:inline-block'>Gonzalez</b><b style='display:inline-block'>Talk</b></p>", "Gonzalez Talk"),
    (
        "<p><b>Gonzalez</b><i style='display:inline-block;width:20px'></i><b>Conversation</b></p>",
        "Gonzalez Conversation",
    ),
    ("<p>un<b style='padding:0 1px'>believ</b>able</p>", "unbelievable"),
]


async def test_lines_with_icons_titles_and_gaps(page: Page) -> None:
    style = f"<style>.mi{{font-family:'Material Symbols Outlined'}}p,section{{margin:0}}{PICTURES}</style>"
    seen = await observe(page, style + "".join(f"<section>{html}</section>" for html, _ in LINES))
    assert seen.text.split("\n") == [line for _, line in LINES]
    assert [element.title for element in seen.elements[:4]] == ["Bold text", "", "Small caps", "Select all"]


async def test_colours_tell_swatches_of_one_kind_apart(page: Page) -> None:
    boxes = "".join(
        f"<div onclick=1 class=swatch style='background:{color};width:9px;height:9px'></div>"
        for color in ("#123", "#456")
    )
    seen = await observe(page, boxes)
    assert [element.key.name for element in seen.elements] == ["rgb(17,34,51)", "rgb(68,85,102)"]


@pytest.mark.parametrize("tag", ["a href=/x", "div onclick=1", "button"])
async def test_a_long_row_is_not_written_twice(page: Page, tag: str) -> None:
    words = [f"word{i}" for i in range(60)]
    name = tag.split(maxsplit=1)[0]
    seen = await observe(page, f"<{tag}><h3>{' '.join(words[:30])}</h3><p>{' '.join(words[30:])}</p></{name}>")
    assert all(word in seen.text for word in words)
    assert len(seen.elements[0].key.name) <= 60
    assert len(seen.text) < len(" ".join(words)) + 100


def test_a_title_is_a_part_of_its_control() -> None:
    line = read_line(
        '[1] checkbox "All" checked title "disabled or not" options: "a" (disabled)  [2] button "x" disabled'
    )
    assert line.roles == ("checkbox", "button")
    assert not line.is_idle


EDITORS = """<style>.empty::before {{ content: attr(data-placeholder); float: left; height: 0 }}</style>
    <div contenteditable><p class=empty data-placeholder="Write something">{}</p></div>
    <div contenteditable class="empty blank" data-placeholder="Compose">{}</div>
    <div contenteditable aria-label=Notes><p class=empty data-placeholder="Your notes">{}</p></div>"""


async def test_the_placeholder_of_an_editor_is_its_name_and_not_what_it_holds(page: Page) -> None:
    seen = await observe(page, EDITORS.format("<br>", "<br>", "<br>"))
    assert seen.text.splitlines() == ['[1] textbox "Write something"', '[2] textbox "Compose"', '[3] textbox "Notes"']
    assert [element.value for element in seen.elements] == ["", "", ""]
    seen = await observe(page, EDITORS.format("one", "two", "three"))
    assert [element.value for element in seen.elements] == ["one", "two", "three"]
