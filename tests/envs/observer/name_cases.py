"""Elements and their accessible names, by section of accname 1.2. In each, `data-x` marks the named element."""

from __future__ import annotations

from typing import Final

_PNG = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw=="

CASES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "comp_labelledby": (
        ("<input data-x aria-labelledby='L1 L2'><b id=L1>Bill</b><b id=L2>to</b>", "Bill to"),
        ("<input data-x aria-labeledby=L3 aria-label=No><b id=L3>Also with one l</b>", "Also with one l"),
        ("<button data-x id=L4 aria-label=Delete aria-labelledby='L4 L5'>x</button><b id=L5>Row 7</b>", "Delete Row 7"),
        ("<button data-x aria-labelledby=absent>Content</button>", "Content"),
        ("<input data-x aria-labelledby=L6><b id=L6 aria-labelledby=L7>One step</b><b id=L7>no chain</b>", "One step"),
        (f"<button data-x aria-labelledby=L8>x</button><img id=L8 src='{_PNG}' alt=Picture>", "Picture"),
        ("<div id=L9>File a.txt <a data-x href=# id=L10 aria-labelledby='L10 L9'>Open</a></div>", "Open File a.txt"),
    ),
    "comp_hidden_not_referenced": (
        ("<button data-x>Shown <span hidden>no</span><span style='visibility:hidden'>no</span></button>", "Shown"),
        ("<button data-x>Shown <span aria-hidden=true>no</span></button>", "Shown"),
        ("<button data-x>A <i style='visibility:hidden'>no <b style='visibility:visible'>B</b></i></button>", "A B"),
        ("<input data-x aria-labelledby=H1><b id=H1 hidden>All <i hidden>of it</i></b>", "All of it"),
        ("<input data-x aria-labelledby=H2><b id=H2>Only <i hidden>no</i></b>", "Only"),
        ("<div style='display:none'><button data-x>Nobody</button></div>", ""),
    ),
    "comp_embedded_control": (
        ("<label><input type=checkbox data-x>Flash <input value=3> times</label>", "Flash 3 times"),
        ("<label><input type=checkbox data-x>Size <select><option>S<option selected>M</select></label>", "Size M"),
        ("<label><input type=checkbox data-x>Up to <input type=range value=30></label>", "Up to 30"),
        (
            "<label><input type=checkbox data-x>At <b role=slider aria-valuenow=5 aria-valuetext=five></b></label>",
            "At five",
        ),
        ("<label><input type=checkbox data-x>Pin <input type=password value=hunter2></label>", "Pin"),
        (
            "<label><input type=checkbox data-x>In <b role=listbox><i role=option>a</i>"
            "<i role=option aria-selected=true>b</i></b></label>",
            "In b",
        ),
    ),
    "comp_label": (
        ("<button data-x aria-label='  Close  it '>x</button>", "Close it"),
        ("<button data-x aria-label='  '>Content</button>", "Content"),
        ("<a data-x href=#><span aria-label=Three>3</span> items</a>", "Three items"),
    ),
    "comp_host_language_label": (
        ("<label for=N1>Given</label><input data-x id=N1>", "Given"),
        ("<label for=N2>First</label><label for=N2>Second</label><input data-x id=N2>", "First Second"),
        ("<label hidden for=N3>Hidden label</label><input data-x id=N3>", "Hidden label"),
        ("<label for=N4>Label</label><input data-x id=N4 type=submit value=Value>", "Label"),
        ("<input data-x type=submit value=Value>", "Value"),
        (f"<input data-x type=image alt=Go src='{_PNG}'>", "Go"),
        (f"<button data-x><img alt=Save src='{_PNG}'></button>", "Save"),
        ("<button data-x><svg width=9 height=9><title>Erase</title><path d='M0 0h9'/></svg></button>", "Erase"),
        ("<fieldset data-x><legend>Where to</legend><input></fieldset>", "Where to"),
        ("<table data-x><caption>Prices</caption><tr><td>1</table>", "Prices"),
        ("<figure data-x><p>x</p><figcaption>Fig. 1</figcaption></figure>", "Fig. 1"),
    ),
    "comp_name_from_content": (
        ("<button data-x>One <b>two</b><i> three</i></button>", "One two three"),
        ("<h2 data-x>Head</h2>", "Head"),
        ("<div data-x role=treeitem>Folder<div role=group><div role=treeitem>File</div></div></div>", "Folder"),
        ("<button data-x>More<span role=menu><span role=menuitem>Entry</span></span></button>", "More"),
        ("<div data-x role=group>not its name</div>", ""),
        ("<a data-x href=# aria-owns=C1>Site</a><b id=C1>(new window)</b>", "Site(new window)"),
        ("<a data-x href=# aria-owns=C2>Site</a><b id=C2 hidden>no</b>", "Site"),
        ("<h3 data-x><a href=# aria-labelledby=C3>x</a> <a href=#>link <img id=C3 alt=pic></a></h3>", "pic link"),
        ("<button data-x class=worded>between</button>", "before between after"),
        ("<button data-x class=alternative>go</button>", "go next"),
        ("<button data-x class=signed>plain</button>", "plain"),
        ("<button data-x class=glyph>plain</button>", "plain"),
    ),
    "comp_text_node": (
        ("<button data-x>5<!-- react -->0 %</button>", "50 %"),
        ("<a data-x href=#><div>Gonzalez</div>Conversation</a>", "Gonzalez Conversation"),
        ("<a data-x href=#>Gonzalez<br>Conversation</a>", "Gonzalez Conversation"),
        ("<a data-x href=#><b style='margin-right:8px'>Gonzalez</b><i>Conversation</i></a>", "Gonzalez Conversation"),
        ("<a data-x href=#><b>Gonzalez</b><i style='padding-left:1em'>Conversation</i></a>", "Gonzalez Conversation"),
        ("<a data-x href=#><b class=ib>Gonzalez</b><b class=ib>Conversation</b></a>", "Gonzalez Conversation"),
        ("<a data-x href=# style='display:flex'><b>Gonzalez</b><i>Conversation</i></a>", "Gonzalez Conversation"),
        ("<a data-x href=# style='display:grid'><b>Gonzalez</b><i>Conversation</i></a>", "Gonzalez Conversation"),
        ("<a data-x href=#><table><tr><td>Gonzalez<td>Conversation</table></a>", "Gonzalez Conversation"),
        ("<a data-x href=#>un<b style='padding:0 1px'>believ</b>able</a>", "unbelievable"),
        ("<a data-x href=#><b class=ib>H</b><b class=ib>e</b><b class=ib>y</b></a>", "Hey"),
        ("<a data-x href=#><b style='margin-right:9px'>Total</b>, net</a>", "Total, net"),
        ("<label for=T1>Title<b style='padding-left:9px'>*</b></label><input data-x id=T1>", "Title*"),
    ),
    "comp_tooltip": (
        ("<input data-x title=Tip placeholder=no>", "Tip"),
        ("<button data-x title=Tip></button>", "Tip"),
        ("<button data-x title=Tip>Content</button>", "Content"),
        ("<button data-x><b title=Inner></b></button>", "Inner"),
        ("<abbr data-x title='Long form'>LF</abbr>", "Long form"),
    ),
}

STYLE: Final = (
    "<style>.ib{display:inline-block}.worded::before{content:'before';padding:0 1em}"
    ".worded::after{content:'after';display:inline-block}.alternative::after{content:'→' / 'next'}"
    ".signed::after{content:' *'}.glyph::before{content:'\\f123'}</style>"
)
SHADOW: Final = (
    ("<label><x-1>slotted</x-1><input data-x></label>", "in <slot></slot> it", "in slotted it"),
    ("<label><x-2></x-2><input data-x></label>", "in <slot aria-label=no>fallback</slot> it", "in fallback it"),
    ("<button data-x><x-3></x-3></button>", "<b aria-label=Labelled>no</b>", "Labelled"),
)
"""Markup, the content of the shadow root of its custom element, and the name."""


def page_of_cases() -> tuple[str, dict[str, str]]:
    """Returns one page with all cases, and the names by case, in document order."""
    names = {f"{section} {i}": name for section, cases in CASES.items() for i, (_, name) in enumerate(cases)}
    names |= {f"shadow DOM {i}": name for i, (_, _, name) in enumerate(SHADOW)}
    bodies = [html for cases in CASES.values() for html, _ in cases] + [html for html, _, _ in SHADOW]
    roots = "".join(
        f"document.querySelector('x-{i + 1}').attachShadow({{mode: 'open'}}).innerHTML = {content!r};"
        for i, (_, content, _) in enumerate(SHADOW)
    )
    return f"<!doctype html>{STYLE}{''.join(f'<section>{b}</section>' for b in bodies)}<script>{roots}</script>", names
