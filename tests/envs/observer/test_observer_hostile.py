"""Pages that shadow the DOM, break its rules or exceed limits: all of their other parts stay readable."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Page

import envs.observer.world
from envs.observer.program import program
from tests.envs.observer.hostile_cases import CASES
from tests.envs.observer.hostile_pages import build, click, named_element, observe, problem
from tests.envs.observer.hostile_tree import GROW, dom_names, tree
from tests.sampled import sampled

pytestmark = pytest.mark.browser

OBSERVER = Path(envs.observer.world.__file__).parent
PROGRAMS = OBSERVER / "in_page"


@pytest.mark.parametrize("body", sampled(pytest.param(body, id=name) for name, body in CASES))
async def test_the_other_controls_of_a_hostile_page_are_listed_and_can_be_clicked(page: Page, body: str) -> None:
    await build(page, body)
    assert await problem(page, effects=True) == ""


async def test_a_field_named_like_a_method_does_not_cost_the_page(page: Page) -> None:
    await build(page, "make('<form role=row><input name=querySelector><button type=button>Inner</button></form>')")
    _, seen = await observe(page)
    assert seen.text.splitlines() == [
        '[1] button "Good"',
        '[2] textbox "querySelector"  [3] button "Inner"',
        '[4] button "Last"',
    ]
    assert seen.note == ""


# Breaks one element: what the isolated world asks the browser about it fails.
BREAK = """(() => {
  const { getComputedStyle } = globalThis;
  globalThis.getComputedStyle = (element) => {
    if (element.id === 'broken') throw new Error('broken');
    return getComputedStyle(element);
  };
})()"""


async def test_an_element_that_cannot_be_read_is_counted_and_its_content_is_shown(page: Page) -> None:
    await build(page, "make('<div id=broken><button>Inside</button></div><p>Beside')")
    observer, seen = await observe(page)
    assert seen.note == ""
    world = await observer._frames.main(5)
    context = world._context
    await world.send("Runtime.evaluate", {"expression": BREAK, "contextId": context}, 5)
    seen = await observer.observe()
    assert seen.note == "1 elements could not be read"
    assert seen.text.splitlines() == ['[1] button "Good"', '[2] button "Inside"', "Beside", '[3] button "Last"']


async def names_clicked(page: Page, *names: str) -> list[str]:
    """Clicks the buttons with these names and returns the clicks that the page received."""
    await page.evaluate("() => { window.clicked = []; addEventListener('click', (e) => clicked.push(e.target.id)); }")
    observer, seen = await observe(page)
    for name in names:
        element = named_element(seen, name)
        assert element is not None, seen.text
        await click(page, observer, element.ref)
    return await page.evaluate("clicked")


LONG = f"{'x' * 58}\U0001f600{'x' * 98}\U0001f600{'y' * 40}"
SURROGATES = [
    ("high", "Pay\\ud800", "Pay\ufffd"),
    ("low", "\\udc00Pay", "\ufffdPay"),
    ("reversed", "\\udc00\\ud800", "\ufffd\ufffd"),
    ("nul", "P\\0y", "Py"),
    ("joined-by-a-hidden-character", "\\ud83d\\u200b\\ude00", "\U0001f600"),
    ("cut-in-a-pair", LONG.replace("\U0001f600", "\\ud83d\\ude00"), LONG[:157] + "…"),
]
SHORTENED = LONG[:58] + "…"
"""The name of a button whose content follows as a line; also cut in a pair."""


@pytest.mark.parametrize(("written", "name"), [case[1:] for case in SURROGATES], ids=[case[0] for case in SURROGATES])
@pytest.mark.parametrize(
    "where", ["one.setAttribute('aria-label', text)", "one.textContent = text"], ids=("label", "text")
)
async def test_a_lone_surrogate_in_a_name_does_not_make_its_button_stale(
    page: Page, written: str, name: str, where: str
) -> None:
    await page.set_content("<button id=pay></button>")
    await page.evaluate(f"() => {{ const one = document.getElementById('pay'); const text = '{written}'; {where}; }}")
    follows = "textContent" in where and len(written) > len(LONG)
    assert await names_clicked(page, SHORTENED if follows else name) == ["pay"]


async def test_equal_names_that_differ_in_a_lone_surrogate_are_distinguished_by_their_order(page: Page) -> None:
    await page.set_content("<p>a <button id=a></button></p><p>b <button id=b></button></p>")
    await page.evaluate("() => { a.textContent = 'x\\ud800'; b.textContent = 'x\\udc00'; }")
    observer, seen = await observe(page)
    assert [(one.key.name, one.key.ordinal) for one in seen.elements] == [("x\ufffd", 0), ("x\ufffd", 1)]
    await page.evaluate("() => { window.clicked = []; addEventListener('click', (e) => clicked.push(e.target.id)); }")
    await click(page, observer, 2)
    assert await page.evaluate("clicked") == ["b"]


async def test_every_text_of_an_observation_is_well_formed(page: Page) -> None:
    await page.set_content(
        "<select aria-label=S><option id=o></select><input id=v><input list=d><datalist id=d><option id=n></datalist>"
        "<p id=p></p><iframe id=f srcdoc='<p>in'></iframe><div id=t></div><h2 id=h></h2><table><tr><td id=c></table>"
    )
    await page.evaluate("""() => {
      const bad = 'x\\ud800\\0y';
      document.title = bad;
      for (const one of [o, p, h, c]) one.textContent = bad;
      v.value = bad;
      n.value = bad;
      for (const name of ['title', 'name', 'src']) f.setAttribute(name, bad);
      t.innerHTML = '<x\\ud800 onclick=1 role=button>tag</x\\ud800>';
    }""")
    observer, seen = await observe(page, effects=True)
    found = await observer.find("x")
    for text in (repr(seen).encode("ascii", "backslashreplace").decode(), found, seen.text, seen.title):
        text.encode()
    assert not re.search(r"\\ud[89a-f]", repr([seen.elements, seen.title, seen.text, found]))
    assert seen.title == "x\ufffd y"


async def test_an_option_is_found_by_the_name_that_is_shown(page: Page) -> None:
    await page.set_content("<select id=s aria-label=S><option>a<option id=o></select>")
    await page.evaluate("() => { o.textContent = 'b\\ud800\\u200b'; }")
    observer, seen = await observe(page)
    assert seen.elements[0].options == ("a", "b\ufffd")
    target = await observer.resolve(1)
    answer = await target.call("function (wanted) { return mira.chooseOption(this, wanted, 9); }", "b\ufffd")  # type: ignore[union-attr]
    assert json.loads(answer) == {"status": "ok"}
    assert await page.evaluate("s.selectedIndex") == 1


async def wrong_seeds(page: Page, seeds: range) -> list[str]:
    """The generated pages of which a known good button is missing or cannot be clicked, and why."""
    names = await dom_names(page)
    wrong: list[str] = []
    for seed in seeds:
        await build(page, "")
        await page.evaluate(GROW, tree(seed, names))
        try:
            failure = await problem(page, effects=bool(seed % 2))
        except Exception as error:  # noqa: BLE001 - whatever the observer raises is what is looked for
            failure = repr(error)[:300]
        if failure:
            wrong.append(f"{seed}: {failure}")
    return wrong


async def test_generated_pages(page: Page) -> None:
    assert await wrong_seeds(page, range(30)) == []


@pytest.mark.slow
@pytest.mark.heavy
async def test_hundreds_of_generated_pages(page: Page) -> None:
    assert await wrong_seeds(page, range(1000, 1300)) == []


async def test_the_generated_pages_break_a_program_that_calls_methods_directly(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: without the prototypes' methods and without containment pages are lost."""

    def direct(parts: tuple[str, ...], calls: str) -> str:
        text = program(parts, calls)
        for a, b in (
            ("=> prototype[name].apply(object, args);", "=> object[name](...args);"),
            ("} catch {\nthis.unread++;", "} catch (error) {\nthrow error;"),
        ):
            assert a in text
            text = text.replace(a, b)
        return text

    monkeypatch.setattr(envs.observer.world, "program", direct)
    wrong = await wrong_seeds(page, range(30))
    assert any("is not a function" in one for one in wrong)


# Objects of the in-page programs and of the browser that pages cannot shadow; everything else counts as a node.
OURS = frozenset(
    re.findall(
        r"\w+",
        "this latest look known control other c part line unit row rows last entry settings inner context style box "
        "frame window Math Number Object Array location event record file view ruler key group of mark inside "
        "sheet rule area whole around meanings units carets counts pressedAppearances",
    )
)


async def test_no_property_of_a_node_is_read_directly(page: Page) -> None:
    """In-page programs read members that the DOM defines only from listed receivers, or in `pristine.js`."""
    names = set(await dom_names(page)) - {"length", "name", "find", "constructor", "toString"}
    wrong: list[str] = []
    programs = {*PROGRAMS.glob("*.js"), OBSERVER.parent / "suites" / "miniwob" / "state.js"} - {
        PROGRAMS / "pristine.js"
    }
    for path in sorted(programs):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = re.sub(r"//.*|/\*\*.*|^ \* .*", "", re.sub(r"'(?:[^'\\]|\\.)*'", "", line))
            for receiver, member in re.findall(r"([\w\])]+)\??\.(\w+)", code):
                if member in names and receiver not in OURS:
                    wrong.append(f"{path.name}:{number}: {receiver}.{member}")
    assert not wrong, "\n".join(wrong)


def test_no_script_in_a_python_file_reads_the_page() -> None:
    """Scripts belong in files that the test above reads; scripts of the benchmarks are exempt."""
    reads = re.compile(r"\b(?:document|this)\.[a-z]\w*")
    suites = OBSERVER.parent / "suites"
    files = {*OBSERVER.parent.glob("*/*.py"), *suites.glob("*/*.py")} - {suites / "miniwob" / "harness.py"}
    assert [path.name for path in files if reads.search(path.read_text(encoding="utf-8"))] == []


def test_no_two_parts_of_a_program_define_one_name() -> None:
    """A function of the same name would silently replace the other."""
    defined = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
    names = [name for path in PROGRAMS.glob("*.js") for name in defined.findall(path.read_text(encoding="utf-8"))]
    assert [name for name in set(names) if names.count(name) > 1] == []


async def test_getters_that_the_page_defines_do_not_run(page: Page) -> None:
    await build(
        page,
        "class Trap extends HTMLElement {}; const names = ['firstChild', 'shadowRoot', 'localName', 'getAttribute', "
        "'nodeType', 'labels', 'hasAttributes', 'namespaceURI']; const trapped = { get() { window.ran = 1; throw 1 } };"
        "for (const kind of [Trap, Element, HTMLInputElement]) for (const name of names) "
        "Object.defineProperty(kind.prototype, name, { ...trapped, configurable: true });"
        "customElements.define('x-trap', Trap); const trap = document.createElement('x-trap');"
        "Node.prototype.appendChild.call(host, trap); trap.textContent = 'In the trap';",
    )
    _, seen = await observe(page, effects=True, boxes=True)
    assert "In the trap" in seen.text and seen.note == ""
    assert await page.evaluate("window.ran") is None


XHTML = "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>T</title></head><body>{}</body></html>"
DOCUMENTS = [
    (
        "xhtml",
        "data:application/xhtml+xml,"
        + XHTML.format("<form role='row'><input name='querySelector'/></form><button>Good</button>"),
        '[2] button "Good"',
    ),
    ("xml", "data:text/xml,<root><button>No button</button><form name='body'>text</form></root>", "No button"),
    (
        "svg",
        "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><text y='20'>Drawn</text><input/></svg>",
        "Drawn",
    ),
    (
        "frameset",
        "data:text/html,<frameset cols=50,50><frame name=querySelector><frame name=firstChild></frameset>",
        "--- frame 1",
    ),
    ("plaintext", "data:text/html,<button>Good</button><plaintext><button>Shown</button>", '[1] button "Good"'),
    ("text", "data:text/plain,plain", "plain"),
    (
        "root-is-a-field",
        "data:text/html,<script>document.documentElement.replaceWith(document.createElement('input'))</script>",
        "",
    ),
    ("no-body", "data:text/html,<script>document.documentElement.innerHTML = ''</script>", ""),
    ("no-root", "data:text/html,<script>document.documentElement.remove()</script>", ""),
    ("opened", "data:text/html,<script>document.open()</script>", ""),
    (
        "two-bodies",
        "data:text/html,<script>document.documentElement.append(document.createElement('body'))</script>A",
        "A",
    ),
]


@pytest.mark.parametrize(("url", "part"), [case[1:] for case in DOCUMENTS], ids=[case[0] for case in DOCUMENTS])
async def test_documents_of_every_kind(page: Page, url: str, part: str) -> None:
    await page.goto(url, wait_until="commit")
    _, seen = await observe(page, effects=True, boxes=True)
    assert part in seen.text
    assert "could not be read" not in seen.note


RESTLESS = {
    "frames-come-and-go": "setInterval(() => { host.replaceChildren(...[1, 2, 3].map(() => { const f = "
    "document.createElement('iframe'); f.srcdoc = '<button>In</button>'; return f; })); }, 20)",
    "frames-navigate": "for (let i = 0; i < 3; i++) { const f = document.createElement('iframe'); host.append(f); "
    "let n = 0; setInterval(() => { f.src = 'data:text/html,<button>' + n++ + '</button>'; }, 50); }",
    "frames-are-rewritten": "const f = document.createElement('iframe'); host.append(f); setInterval(() => { "
    "const d = f.contentDocument; d.open(); d.write('<button>In</button>'); }, 1)",
    "elements-come-and-go": "let n = 0; setInterval(() => { host.replaceChildren(); for (let i = 0; i < 50; i++) "
    "make('<div role=row><button onclick=1>' + n++ + '</button><x-a></x-a></div>'); }, 1)",
    "roots-come-and-go": "setInterval(() => { const d = document.createElement('x-b'); host.replaceChildren(d); "
    "d.attachShadow({ mode: 'closed' }).innerHTML = '<slot></slot><button>In</button>'; d.append('text'); }, 1)",
}


@pytest.mark.parametrize("body", sampled(pytest.param(body, id=name) for name, body in RESTLESS.items()))
async def test_a_page_that_changes_all_the_time_is_observed(page: Page, body: str) -> None:
    await build(page, body)
    observer, seen = await observe(page, effects=True, timeout_s=8.0)
    for _ in range(3):
        seen = await observer.observe(boxes=True)
        assert named_element(seen, "Good") is not None and named_element(seen, "Last") is not None
    element = named_element(seen, "Last")
    assert element is not None
    await click(page, observer, element.ref)
    assert await page.evaluate("window.hits") == "last"
