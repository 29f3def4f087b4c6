"""A page of controls whose state only attributes, classes or styles show, and of look-alikes that have no such state.

Every variant stands in its own section, whose heading is its name. A variant toggles by a click on the control that
`press` names.
"""

from __future__ import annotations

from typing import NamedTuple


class Variant(NamedTuple):
    name: str
    press: str
    """Name of the control that is clicked."""
    before: str
    """Cue of that control before the click; empty = none."""
    after: str
    html: str


ONE = "const all = [...this.parentNode.children]; all.forEach(o => o.className = '{off}'); this.className = '{on}'"
"""Selects one of several siblings."""


def one_of(tag: str, names: str, on: str, off: str, chosen: int = 0) -> str:
    script = ONE.format(on=on, off=off)
    return "".join(
        f'<{tag} class="{on if i == chosen else off}" onclick="{script}">{name}</{tag}>'
        for i, name in enumerate(names.split())
    )


def toggles(token: str) -> str:
    return f"this.classList.toggle('{token}')"


TAILWIND_ON = "px-3 py-1 hover:bg-gray-50 bg-white tw-ink shadow"
TAILWIND_OFF = "px-3 py-1 hover:bg-gray-50 tw-mute"
HEART = "M12 21 3 12a5 5 0 0 1 9-6 5 5 0 0 1 9 6z"

VARIANTS = (
    Variant(
        "bootstrap button group",
        "Weekly",
        "",
        "selected?",
        one_of("button", "Daily Weekly Monthly", "btn btn-group-item active", "btn btn-group-item"),
    ),
    Variant(
        "bootstrap 3 tabs",
        "Profile",
        "",
        "selected?",
        "<ul class=nav>"
        + "".join(
            f"<li class='{'active' if n == 'Home' else ''}'><a href='#'"
            f" onclick=\"this.closest('ul').querySelector('.active')"
            f".className = ''; this.parentNode.className = 'active'; return false\">{n}</a></li>"
            for n in ("Home", "Profile", "Messages")
        )
        + "</ul>",
    ),
    Variant(
        "material tabs",
        "Lyrics",
        "",
        "selected?",
        one_of("button", "Song Lyrics Artist", "MuiTab-root css-k1 Mui-selected", "MuiTab-root css-k1"),
    ),
    Variant(
        "ant switch",
        "Airplane",
        "",
        "checked?",
        f'<button class="ant-switch" onclick="{toggles("ant-switch-checked")}"><div'
        f' class="ant-switch-handle"></div><span>Airplane</span></button>',
    ),
    Variant(
        "ant segmented",
        "Kanban",
        "",
        "selected?",
        one_of("div", "List Kanban", "ant-segmented-item ant-segmented-item-selected", "ant-segmented-item"),
    ),
    Variant(
        "tailwind segments", "Dark", "", "selected?", one_of("button", "Light Dark System", TAILWIND_ON, TAILWIND_OFF)
    ),
    Variant(
        "jquery switch on",
        "Wifi",
        "",
        "on?",
        f'<div class="toggle-switch" onclick="{toggles("on")}"><span class=knob></span> Wifi</div>',
    ),
    Variant(
        "switch on and off",
        "Radio",
        "off?",
        "on?",
        "<div class='switch off' onclick=\"this.className = 'switch on'\">Radio</div>",
    ),
    Variant(
        "css modules",
        "Bold",
        "",
        "selected?",
        f'<button class="Button_root__a1b" onclick="{toggles("Button_active__x3f")}">Bold</button>',
    ),
    Variant("css in js", "Spring", "", "selected?", one_of("div", "Winter Spring Summer", "css-19ab2", "css-7xkq1")),
    Variant(
        "inline styles",
        "Right",
        "",
        "selected?",
        "".join(
            "<button onclick=\"[...this.parentNode.children].forEach(o => o.style.background = ''); "
            f"this.style.background = 'gold'\"{' style=background:gold' if n == 'Left' else ''}>{n}</button>"
            for n in ("Left", "Centre", "Right", "Justify")
        ),
    ),
    Variant(
        "custom element",
        "Sound",
        "",
        "checked",
        "<x-switch tabindex=0 onclick=\"this.toggleAttribute('checked')\">Sound</x-switch>",
    ),
    Variant(
        "background image checkbox",
        "Gift wrap",
        "",
        "checked?",
        "<div onclick=\"this.firstChild.classList.toggle('is-checked')\"><span class=box></span>Gift wrap</div>",
    ),
    Variant(
        "before content with an unknown class",
        "Express",
        "",
        "changed?",
        f'<div class=tick onclick="{toggles("x1")}">Express</div>',
    ),
    Variant(
        "font awesome toggle",
        "Alerts",
        "off?",
        "on?",
        "<a onclick=\"this.firstChild.className = 'fa fa-toggle-on'\"><i class='fa fa-toggle-off'></i> Alerts</a>",
    ),
    Variant(
        "icon swap",
        "Star it",
        "",
        "changed?",
        "<button aria-label='Star it' onclick=\"this.firstChild.className = 'fa fa-star'\"><i"
        " class='fa fa-star-o'></i></button>",
    ),
    Variant(
        "drawing swap",
        "Heart it",
        "",
        "changed?",
        f"<button aria-label='Heart it' onclick=\"this.querySelector('path').setAttribute('d', '{HEART}')\">"
        "<svg width=24 height=24><path d='M1 1h22v22H1z'></path></svg></button>",
    ),
    Variant(
        "selected layer",
        "Rivers",
        "",
        "selected?",
        f"<ul>{one_of('li', 'Roads Rivers Cities', 'layer selected', 'layer')}</ul>",
    ),
    Variant(
        "caret row",
        "Folder",
        "",
        "expanded?",
        "<div onclick=\"this.firstChild.className = 'fa fa-caret-down'\"><i class='fa"
        " fa-caret-right'></i> Folder</div>",
    ),
    Variant(
        "collapsed class",
        "Section",
        "collapsed?",
        "",
        f'<a class="accordion-button collapsed" onclick="{toggles("collapsed")}">Section</a>',
    ),
    Variant(
        "radix data-state",
        "Italic",
        "off",
        "on",
        "<button data-state=off onclick=\"this.dataset.state = 'on'\">Italic</button>",
    ),
    Variant(
        "aria-current",
        "Page 2",
        "",
        "current",
        "".join(
            f"<a href='#' {'aria-current=page' if n == 1 else ''}"
            f" onclick=\"this.parentNode.querySelector('[aria-current]')"
            f".removeAttribute('aria-current'); this.setAttribute('aria-current', 'page');"
            f' return false">Page {n}</a> '
            for n in (1, 2, 3)
        ),
    ),
    Variant(
        "headless data-selected",
        "Plan B",
        "",
        "selected",
        "".join(
            f"<div {'data-selected' if n == 'A' else ''} onclick=\"this.parentNode.querySelector('[data-selected]')"
            f".removeAttribute('data-selected'); this.dataset.selected = ''\">Plan {n}</div>"
            for n in "ABC"
        ),
    ),
    Variant(
        "bem current step",
        "Payment",
        "",
        "selected?",
        one_of("span", "Address Payment Review", "steps__item steps__item--current", "steps__item"),
    ),
    Variant(
        "selected table row",
        "Invoice 2",
        "",
        "selected?",
        "<table>"
        + "".join(
            f"<tr class='{'selected' if n == 1 else ''}'><td><a href='#' onclick=\"this.closest('table')"
            ".querySelector('.selected').className = ''; this.closest('tr').className = 'selected'; return false\">"
            f"Invoice {n}</a><td>paid</tr>"
            for n in (1, 2, 3)
        )
        + "</table>",
    ),
    Variant("liked", "Like it", "", "liked?", f'<button class=heart onclick="{toggles("liked")}">Like it</button>'),
    Variant(
        "disabled look",
        "Pay later",
        "",
        "disabled?",
        f'<div class=fakebtn onclick="{toggles("fakebtn--disabled")}">Pay later</div>',
    ),
    Variant(
        "faint without a word",
        "Pay now",
        "",
        "disabled?",
        f'<div class=fakebtn onclick="{toggles("zq")}">Pay now</div>',
    ),
    Variant(
        "inline style alone",
        "Lamp",
        "",
        "changed?",
        "<div onclick=\"this.style.background = 'gold'\">Lamp</div>",
    ),
    Variant(
        "hidden native box",
        "Newsletter",
        "",
        "checked",
        "<div class=wrap onclick=\"this.querySelector('input').checked ^= 1\"><input"
        " type=checkbox hidden><i class=dot></i>"
        "Newsletter</div>",
    ),
    Variant("one of two", "Grid", "", "changed?", one_of("button", "List Grid", "css-19ab2", "css-7xkq1")),
    Variant(
        "rendered again",
        "Repeat",
        "",
        "changed?",
        "<div class=again><button class=css-19ab2 onclick=\"const all = this.closest('.again'); all.innerHTML = "
        "all.innerHTML.replace('19ab2', '7xkq1')\">Repeat</button></div>",
    ),
    Variant(
        "a row of a tree",
        "Node",
        "collapsed",
        "expanded",
        "<ul><li aria-expanded=false><a onclick=\"this.parentNode.ariaExpanded = 'true'\">Node</a></ul>",
    ),
)

LOOKALIKES = {
    "zebra rows": "<div class=zebra>" + "".join(f"<div onclick=go()>Zebra {n}</div>" for n in range(7)) + "</div>",
    "three zebra rows": "<div class=zebra>"
    + "".join(f"<div onclick=go()>Three {n}</div>" for n in range(3))
    + "</div>",
    "zebra classes": "".join(
        f"<div class='row {'odd' if n % 2 else 'even'}' onclick=go()>Row {n}</div>" for n in range(3)
    ),
    "hovered": "".join(f"<button class=hoverable>Hover {n}</button>" for n in range(5)),
    "focused": "".join(f"<button class=focusable>Focus {n}</button>" for n in range(5)),
    "script hover": "<div onclick=go() onmouseenter=\"this.style.background = 'pink'\">Script hover</div>",
    "status badges": "".join(
        f"<div onclick=go()>Ticket {n} <span class='badge badge-{c}'>{c}</span></div>"
        for n, c in enumerate(("active", "closed", "open", "open"))
    ),
    "first child": "<nav class=firstbold>" + "".join(f"<a href='/f{n}'>First {n}</a>" for n in range(5)) + "</nav>",
    "sorted column": "<table><tr>"
    + "".join(f"<th class='{'sorting_asc' if n == 1 else 'sorting'}' onclick=go()>Column {n}</th>" for n in range(4))
    + "</tr></table>",
    "error field": "".join(
        f"<input class='field {'error' if n == 1 else ''}' aria-label='Field {n}'>" for n in range(4)
    ),
    "visited link": "".join(f"<a href='{'#' if n == 1 else f'/v{n}'}'>Visit {n}</a> " for n in range(4)),
    "not-allowed cursor": "".join(
        f"<button class='{'nope' if n == 1 else ''}' onclick=go()>Cursor {n}</button>" for n in range(4)
    ),
    "primary button": "<button class='btn btn-primary'>Save</button><button class=btn>Cancel</button>"
    "<button class=btn>Preview</button><button class=btn>Print</button>",
    "tailwind primary button": "<button class='px-3 tw-blue'>Continue</button><button"
    " class='px-3 tw-mute'>Later</button>"
    "<button class='px-3 tw-mute'>Never</button>",
    "danger entry": "".join(
        f"<div role=menuitem class='{'text-danger' if n == 'Purge' else ''}'>{n}</div>"
        for n in ("Copy", "Move", "Purge")
    ),
    "variants of tailwind": "".join(
        f"<button class='active:scale-95 disabled:opacity-50 data-[state=on]:bg-white"
        f" aria-selected:tw-blue'>Tail {n}</button>"
        for n in range(3)
    ),
    "topic words": "<a href=/a class=link-active>Active users</a> <button"
    " class='btn-delete-selected'>Delete selected</button>"
    " <button class='modal-open'>Open dialog</button> <button class='btn add-on'>Extras</button>"
    " <a href=/s class='on-sale'>Bargains</a> <span class='current-price' onclick=go()>Price</span>",
    "colours by class": "<a class=text-muted href=/m>Faded</a> <a class=text-current href=/c>Inherited</a>",
    "negated words": "<div class=not-active onclick=go()>One</div><div class=is-not-selected onclick=go()>Two</div>",
    "openers": "<button class=modal-open aria-label=Menu></button><button class=nav-open>Nav</button>",
    "rows by data": "<table>"
    + "".join(f"<tr class='{'kx' if n == 1 else ''}' onclick=go()><td>Case {n}<td>late</tr>" for n in range(4))
    + "<tr data-state=open onclick=go()><td>Case 9<td>late</tr></table>",
    "a word that all have": "".join(f"<div class='user active' onclick=go()>User {n}</div>" for n in range(4)),
    "unread rows": "".join(
        f"<div class='mail {'unread' if n == 1 else ''}' onclick=go()>Mail {n} from a person about a matter</div>"
        for n in range(4)
    ),
    "today": "".join(f"<td class='day {'today' if n == 3 else ''}' onclick=go()>{n}</td>" for n in range(1, 8)),
    "call to action": "<nav>"
    + "".join(f"<a class=nav-link href=/n{n}>Nav {n}</a>" for n in range(3))
    + "<a class='nav-link tw-blue' href=/up>Sign up</a></nav>",
}
"""Sections in which no control has a cue, whatever is hovered or focused."""

STYLE = """
.active, .Mui-selected { background: navy; color: white } .tw-ink { color: black; background: white }
.tw-mute { color: gray }
.shadow { box-shadow: 0 1px 2px black } .tw-blue { background: blue; color: white }
.css-19ab2 { border-bottom: 2px solid red; color: red } .css-7xkq1 { border-bottom: 2px solid transparent }
.box { display: inline-block; width: 16px; height: 16px; border: 1px solid }
.is-checked { background-image: linear-gradient(red, blue) } .tick::before { content: "" }
.tick.x1::before { content: "✓" }
.fa { display: inline-block; width: 12px; height: 12px } .fakebtn { cursor: pointer }
.zq, .fakebtn--disabled { opacity: .4; cursor: not-allowed }
.zebra > :nth-child(even) { background: #eee } .odd { background: #eee }
.hoverable:hover { background: gold; border-color: red }
.focusable:focus { outline: 3px solid blue; background: gold }
.badge { color: white } .badge-active { background: green } .badge-open { background: blue }
.badge-closed { background: gray }
.firstbold :first-child { margin-left: 20px; font-weight: bold; color: black } .sorting_asc { background: #def }
.error { border: 1px solid red } .nope { cursor: not-allowed } .btn-primary { background: blue; color: white }
.text-danger { color: red } .unread { font-weight: bold } .today, .kx { background: gold } section { margin-top: 8px }
"""


_SECTIONS = (*((variant.name, variant.html) for variant in VARIANTS), *LOOKALIKES.items())
PAGE = f"<!doctype html><style>{STYLE}</style><script>function go() {{}}</script>" + "".join(
    f"<section><h2>{name}</h2><div>{html}</div></section>" for name, html in _SECTIONS
)
