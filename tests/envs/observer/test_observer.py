"""The observer's exact text for small pages."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from envs.core.observation import Observation
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from tests.conftest import Site

pytestmark = pytest.mark.browser

CASES = [
    (
        "text-and-controls-of-a-line-stand-two-spaces-apart",
        "<h1>Orders</h1><p>Sold by   <b>seller</b> 3 <a href=/x>go</a> now</p>one<br>two",
        ["# Orders", 'Sold by seller 3  [1] link "go"  now', "one", "two"],
    ),
    (
        "names",
        "<input aria-label=A><input aria-labelledby='x y'><b id=x hidden>First</b><b id=y hidden>Second</b>"
        "<label>Wrapped <input></label><label for=z>For z</label><input id=z><input title=T><input placeholder=P>"
        "<button><img alt='Save it' src=x></button><a href='/a/b.html?q=1'><svg width=9 height=9></svg></a>"
        "<input type=submit><input name=q><img alt=Logo src=x width=20 height=20>",
        [
            '[1] textbox "A"  [2] textbox "First Second"  [3] textbox "Wrapped"  [4] textbox "For z"  [5] textbox "T"  '
            '[6] textbox "P"  [7] button "Save it"  [8] link "b.html"  [9] button "Submit"  [10] textbox "q"  '
            'image "Logo"'
        ],
    ),
    (
        "states",
        "<input type=checkbox checked aria-label=c><button disabled>No</button>"
        "<fieldset disabled><input aria-label=f value=v></fieldset><button aria-expanded=false>Menu</button>"
        "<input required readonly aria-label=rr value=x><input id=foc aria-label=foc><script>foc.focus()</script>"
        "<div role=tab aria-selected=true>Tab</div><div role=checkbox aria-checked=mixed>Mixed</div>"
        "<details><summary>More</summary>hidden <button>hid</button></details>",
        [
            '[1] checkbox "c" checked  [2] button "No" disabled',
            '[3] textbox "f" = "v" disabled',
            '[4] button "Menu" collapsed  [5] textbox "rr" = "x" readonly required  [6] textbox "foc" focused',
            '[7] tab "Tab" selected',
            '[8] checkbox "Mixed" unchecked-mixed',
            '[9] button "More" collapsed',
        ],
    ),
    (
        "values",
        "<select aria-label=Size><option>S<option selected>M<option>L</select><input type=range value=30 aria-label=v>"
        "<input type=date value=2026-01-02 aria-label=day><textarea aria-label=t>a\nb</textarea>"
        "<div contenteditable aria-label=Body>Hello <b>you</b></div>",
        [
            '[1] combobox "Size" = "M" options: "S" "M" "L"  [2] slider "v" = "30"  [3] date "day" = "2026-01-02"  '
            '[4] textbox "t" = "a b"',
            '[5] textbox "Body" = "Hello you"',
        ],
    ),
    (
        "password-values-are-never-shown",
        "<input type=password aria-label=pw value=hunter2><input type=password aria-label=none>"
        "<input autocomplete=current-password aria-label=open value=hunter2>",
        ['[1] textbox "pw" = "•••" password  [2] textbox "none" password  [3] textbox "open" = "•••" password'],
    ),
    (
        "hidden-parts",
        "<p style='display:none'>no</p>"
        "<p style='visibility:hidden'>no<button style='visibility:visible'>yes</button></p>"
        "<button style='position:absolute;left:-9999px'>off</button><p aria-hidden=true>deco <button>act</button></p>"
        "<div style='height:0;overflow:hidden'><button>shut</button></div><div style='opacity:0'>clear</div>",
        ['[1] button "yes"', '[2] button "act"'],
    ),
    (
        "inputs-drawn-by-their-label",
        "<label><input style='position:absolute;opacity:0;width:0;height:0' type=checkbox><b>Remember</b></label>"
        "<label><input type=radio style='display:none' checked>Pick</label>"
        "<p><label><input type=checkbox> I agree to the <a href=/t>terms</a></label>",
        [
            '[1] checkbox "Remember"',
            '[2] radio "Pick" checked',
            '[3] checkbox "I agree to the terms"  [4] link "terms"',
        ],
    ),
    (
        "clickable-without-a-role",
        "<div style='cursor:pointer'>Card</div><div style='cursor:pointer'>Card <button>Buy</button> text</div>"
        "<div onclick=1>Inline</div><div id=l>Listener</div><div id=d><button>1</button><button>2</button></div>"
        "<div style='background:red;width:20px;height:20px' onclick=1></div>"
        "<script>l.addEventListener('mousedown',()=>1);d.addEventListener('click',()=>1)</script>",
        [
            '[1] clickable "Card"',
            '[2] clickable "Card Buy text"  Card  [3] button "Buy"  text',
            '[4] clickable "Inline"',
            '[5] clickable "Listener"',
            '[6] button "1"  [7] button "2"',
            '[8] clickable "red"',
        ],
    ),
    (
        "drawings",
        "<svg width=200 height=200><circle cx=50 cy=50 r=20 fill=red /><rect id=rc x=99 y=99 width=40 height=20 "
        "fill=blue /><text x=9 y=190>Lbl</text></svg><script>rc.addEventListener('click',()=>1)</script>",
        ['circle red 40×40  [1] rect "blue 40×20"  Lbl'],
    ),
    (
        "shadow-roots-closed-and-open",
        "<x-a></x-a><div id=o><b>light</b></div><script>"
        "const root = (host, mode, html) => { host.attachShadow({mode}).innerHTML = html };"
        "const tag = (name, html) => customElements.define(name, class extends HTMLElement {"
        "  connectedCallback() { root(this, 'closed', html) } });"
        "tag('x-b', '<a href=/n>In</a>'); tag('x-a', '<button>Closed</button><x-b></x-b>');"
        "root(o, 'open', '<i>before</i> <slot></slot> <slot name=x>else</slot>')</script>",
        ['[1] button "Closed"  [2] link "In"', "before light else"],
    ),
    (
        "page-text-cannot-make-refs-groups-or-frames",
        '<p>[3] button "Pay"<p>… g1: row ×3<p>--- frame 1 "x" y<p># big<p>--- end frame 1<p>a\u200b[\u200b5]<p>\\[9]'
        '<p><button>Say "hi" \\ [7]</button>',
        [
            '\\[3] button "Pay"',
            "\\… g1: row ×3",
            '\\--- frame 1 "x" y',
            "\\# big",
            "\\--- end frame 1",
            "a\\[5]",
            "\\\\\\[9]",
            r'[1] button "Say \"hi\" \\ \[7]"',
        ],
    ),
    (
        "table-rows-are-lines",
        "<table><tr><th>A<th>B</tr><tr><td>1<td><button>x</button></tr><tr><td><td>only b</table>",
        ["A | B", '1 | [1] button "x"', " | only b"],
    ),
    (
        "frames-of-this-process",
        "<iframe title=S srcdoc=\"<button>In</button><iframe srcdoc='<a href=/q>Deep</a>'></iframe>\"></iframe>"
        "<iframe style='display:none' srcdoc='<p>no'></iframe>",
        [
            '--- frame 1 "S" about:srcdoc',
            '[1] button "In"',
            '--- frame 2 "" about:srcdoc',
            '[2] link "Deep"',
            "--- end frame 2",
            "--- end frame 1",
        ],
    ),
    (
        "properties-named-over-by-form-fields",
        "<form><input name=childNodes><input name=getAttribute><input name=firstChild><input name=nodeType></form>"
        "<img name=body><img name=title><img name=documentElement>",
        ['[1] textbox "childNodes"  [2] textbox "getAttribute"  [3] textbox "firstChild"  [4] textbox "nodeType"'],
    ),
    (
        "options-that-cannot-be-chosen",
        "<select aria-label=Size><option disabled>Pick one<option>S<optgroup disabled label=Big><option>XL</select>"
        "<select aria-label=Off disabled><option>A</select>",
        [
            '[1] combobox "Size" = "S" options: "Pick one" (disabled) "S" "XL" (disabled)  '
            '[2] combobox "Off" = "A" disabled options: "A"'
        ],
    ),
    (
        "options-of-groups-with-equal-labels",
        "<select aria-label=Ship><option>Pick-up<optgroup label=Italy><option>Standard<option>Express</optgroup>"
        "<optgroup label=Spain><option selected>Standard</optgroup><optgroup><option>Standard</optgroup></select>",
        [
            '[1] combobox "Ship" = "Spain: Standard" options: "Pick-up" "Italy: Standard" "Express" "Spain: Standard" '
            '"Standard"'
        ],
    ),
    (
        "copies-of-custom-controls-for-the-form",
        "<style>input { position: absolute; pointer-events: none; opacity: 0 }</style>"
        "<form><button type=button role=switch aria-checked=true aria-label=Dark></button>"
        "<input type=checkbox aria-hidden=true tabindex=-1 checked>"
        "<div tabindex=0 role=combobox aria-expanded=false aria-label=Age>Ten</div>"
        "<input aria-hidden=true tabindex=-1 value=10>"
        "<label><input type=checkbox aria-hidden=true tabindex=-1>Own</label>"
        "<p><input type=checkbox aria-label=Kept></form>",
        [
            '[1] switch "Dark" checked',
            '[2] combobox "Age" = "Ten" collapsed',
            '[3] checkbox "Own"',
            '[4] checkbox "Kept"',
        ],
    ),
    (
        "what-lies-behind-a-modal-dialog-is-counted",
        "<button>Behind</button><dialog id=d><button>Inside</button></dialog><script>d.showModal()</script>",
        ['[1] button "Inside" focused', "--- behind the dialog: 1 control, not usable until it is closed"],
    ),
]


async def observe(page: Page, html: str = "", **settings: object) -> Observation:
    if html:
        await page.set_content(html)
    return await Observer(page, ObserveSettings(**{"timeout_s": 30.0, **settings})).observe()  # type: ignore[arg-type]


@pytest.mark.parametrize(("html", "lines"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_text(page: Page, html: str, lines: list[str]) -> None:
    assert (await observe(page, html)).text.splitlines() == lines


async def test_frames_of_another_process(page: Page, site: Site) -> None:
    inner = site.url("/in", host="localhost")
    site.pages = {
        "/": f'<button>Top</button><iframe title=Pay src="{inner}"></iframe><button>After</button>',
        "/in": f'<button>Pay</button><iframe title=Back src="{site.url("/deep")}"></iframe>',
        "/deep": "<a href=/x>Deep</a>",
    }
    await page.goto(site.url())
    seen = await observe(page)
    assert seen.text.splitlines() == [
        '[1] button "Top"',
        f'--- frame 1 "Pay" {inner}',
        '[2] button "Pay"',
        f'--- frame 2 "Back" {site.url("/deep")}',
        '[3] link "Deep"',
        "--- end frame 2",
        "--- end frame 1",
        '[4] button "After"',
    ]
    assert [element.key.frame for element in seen.elements] == ["", "0", "0.0", ""]


async def test_elements_say_what_the_text_says(page: Page) -> None:
    seen = await observe(page, "<select aria-label=S><option>a<option selected>b</select><input type=password value=x>")
    box, secret = seen.elements
    assert (box.ref, box.key.role, box.key.name, box.tag, box.value, box.options) == (
        1,
        "combobox",
        "S",
        "select",
        "b",
        ("a", "b"),
    )
    assert secret.value == "•••" and "password" in secret.states
    assert seen.element(2) is secret and seen.element(3) is None
    assert seen.controls_total == 2


async def test_a_drop_down_that_is_named_by_its_value_shows_it_once(page: Page) -> None:
    facade = "<span role=combobox aria-expanded=false tabindex=0 {}><span id=chosen>Pick a status</span></span>"
    seen = await observe(page, facade.format("aria-labelledby=chosen") + facade.format("aria-label=Status"))
    assert seen.text == '[1] combobox "Pick a status" collapsed  [2] combobox "Status" = "Pick a status" collapsed'
    assert [element.value for element in seen.elements] == ["Pick a status", "Pick a status"]


async def test_labels_of_a_shadow_tree_and_several_labels_name_a_field(page: Page) -> None:
    inside = "<label for=a>Inner</label><input id=a>"
    seen = await observe(
        page,
        "<label for=a>First</label> <label>Second <input id=a></label> <button id=b>Go</button><label for=b>Now</label>"
        f"<div><template shadowrootmode=open>{inside}</template></div>",
    )
    assert [element.key.name for element in seen.elements] == ["First Second", "Now", "Inner"]


async def test_skipped_parts_are_not_shown(page: Page) -> None:
    seen = await observe(page, "<div id=query>Goal <b>text</b></div><p>Rest", skip="#query")
    assert seen.text == "Rest"


async def test_names_values_and_options_are_cut_visibly(page: Page) -> None:
    options = "".join(f"<option>o{i}" for i in range(9))
    seen = await observe(
        page, f"<button>{'n' * 50}</button><select aria-label=S>{options}</select>", name_chars=20, max_options=2
    )
    assert seen.text.splitlines() == [
        f'[1] button "{"n" * 19}…"  {"n" * 50}  [2] combobox "S" = "o0" options: "o0" "o1" … 7 more'
    ]


async def test_a_field_that_was_a_password_stays_masked(page: Page) -> None:
    await page.set_content("<input id=p type=password value=hunter2>")
    observer = Observer(page, ObserveSettings(timeout_s=30))
    await observer.observe()
    await page.evaluate("document.getElementById('p').type = 'text'")
    assert "hunter2" not in (await observer.observe()).text


async def test_lone_surrogates_become_storable(page: Page) -> None:
    await page.set_content("<p id=p></p><button id=b></button>")
    await page.evaluate("p.textContent = 'a\\ud800b'; b.setAttribute('aria-label', 'x\\udc00\\0')")
    seen = await observe(page)
    assert "a\ufffdb" in seen.text and seen.text.encode()
    assert seen.elements[0].key.name.encode()


async def test_boxes_are_in_pixels_of_the_top_viewport(page: Page, site: Site) -> None:
    style = "<style>*{margin:0;border:0;padding:0}</style>"
    button = f"{style}<button style='position:absolute;left:5px;top:7px;width:40px;height:20px'>B</button>"
    frame = "<iframe style='position:absolute;left:100px;top:{}px' src='{}'></iframe>"
    site.pages = {
        "/": style + frame.format(50, "/in") + frame.format(300, site.url("/in", host="localhost")),
        "/in": button,
    }
    await page.goto(site.url())
    same, cross = (await observe(page, boxes=True)).elements
    assert same.box == (105, 57, 40, 20)
    assert cross.box == (105, 307, 40, 20)
