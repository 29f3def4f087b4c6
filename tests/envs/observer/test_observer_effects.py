"""The effects of controls: forms, links, accepted input and listeners."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from envs.core.observation import Effect, InputKind, Observation
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from tests.conftest import Site
from tests.sampled import sampled

pytestmark = pytest.mark.browser


def effect(sends: str = "", leads: str = "", takes: str = "", *listened: InputKind) -> Effect:
    return Effect(sends, leads, takes, frozenset(listened))  # type: ignore[arg-type]


ON = "addEventListener('{}', () => {{}})"
"""A listener that a page adds by script."""


def listens(where: str, event: str = "click") -> str:
    return f"<script>{where}.{ON.format(event)}</script>"


POSTS = "<form method=post><button>x</button></form>"
CASES = [
    pytest.param("<button>x</button>", effect(), id="button-without-a-form"),
    pytest.param(POSTS, effect("post"), id="button-of-a-form"),
    pytest.param("<form><button>x</button></form>", effect("get"), id="get-is-the-default"),
    pytest.param("<form method=put><button>x</button></form>", effect("get"), id="an-unknown-method-is-get"),
    pytest.param("<form method=post><button type=foo>x</button></form>", effect("post"), id="unknown-type-submits"),
    pytest.param("<form method=post><button type=button>x</button></form>", effect(), id="type-button"),
    pytest.param("<form method=post><button formmethod=get>x</button></form>", effect("get"), id="formmethod"),
    pytest.param("<form method=dialog><button>x</button></form>", effect("dialog"), id="method-dialog"),
    pytest.param("<form action='javascript:1'><button>x</button></form>", effect("other"), id="action-javascript"),
    pytest.param("<form><button formaction='mailto:a@b'>x</button></form>", effect("other"), id="formaction-mailto"),
    pytest.param("<button form=f>x</button><form id=f method=post></form>", effect("post"), id="form-attribute"),
    pytest.param(
        "<form method=post><input name=method hidden><input name=action hidden><button>x</button></form>",
        effect("post"),
        id="fields-that-shadow-the-form",
    ),
    pytest.param(
        f"<div role=button tabindex=0 aria-label=x style='padding: 5px'>{POSTS.replace('x', 'y')}</div>",
        effect("post"),
        id="a-button-in-it",
    ),
    pytest.param(
        "<form method=post><button><b role=link tabindex=0>x</b></button></form>", effect("post"), id="around"
    ),
    pytest.param(
        "<form method=post><label for=s><b role=button tabindex=0>x</b></label><input id=s type=submit value=y></form>",
        effect("post"),
        id="the-label-of-a-button-around",
    ),
    pytest.param(
        "<div id=h></div><script>h.attachShadow({mode: 'closed'}).innerHTML = '" + POSTS + "'</script>",
        effect("post"),
        id="in-a-closed-shadow-root",
    ),
    pytest.param("<a href=/y>x</a>", effect(leads="page"), id="link"),
    pytest.param("<a href='#y'>x</a>", effect(leads="here"), id="fragment"),
    pytest.param("<a href=''>x</a>", effect(leads="page"), id="empty-address"),
    pytest.param("<a href=' JavaScript:y()'>x</a>", effect(leads="other"), id="javascript"),
    pytest.param("<a href='tel:1'>x</a>", effect(leads="other"), id="tel"),
    pytest.param("<a href='http://['>x</a>", effect(leads="other"), id="no-address"),
    pytest.param("<a href=/y download>x</a>", effect(leads="file"), id="download"),
    pytest.param("<a href=/y><b role=button tabindex=0>x</b></a>", effect(leads="page"), id="link-around"),
    pytest.param("<input aria-label=x>", effect(takes="text"), id="text-field"),
    pytest.param("<input type=date aria-label=x>", effect(takes="text"), id="date-field"),
    pytest.param("<div contenteditable aria-label=x>y</div>", effect(takes="text"), id="editor"),
    pytest.param("<input type=checkbox aria-label=x>", effect(), id="checkbox"),
    pytest.param("<input type=file aria-label=x>", effect(takes="file"), id="file"),
    pytest.param("<select aria-label=x><option>y</select>", effect(takes="choice"), id="drop-down"),
    pytest.param("<button onclick='y()'>x</button>", effect("", "", "", "press"), id="inline-handler"),
    pytest.param("<button id=e>x</button>" + listens("e", "pointerdown"), effect("", "", "", "press"), id="listener"),
    pytest.param("<button><b id=e>x</b></button>" + listens("e"), effect("", "", "", "press"), id="listener-inside"),
    pytest.param("<p id=e><button>x</button></p>" + listens("e"), effect("", "", "", "press"), id="listener-around"),
    *(
        pytest.param(html + listens(where), effect("", leads, "", "press"), id=f"{html}-at-{where}")
        for where in ("document.body", "document.documentElement", "document", "window")
        for html, leads in (
            ("<button>x</button>", ""),
            ("<a href='#'>x</a>", "here"),
            ("<a href=/y data-method=delete>x</a>", "page"),
            ("<a href=/y hx-post=/z>x</a>", "page"),
            ("<a href=/y role=button>x</a>", "page"),
        )
    ),
    *(
        pytest.param(html + listens(where) + listens("navigation", "navigate"), expected, id=f"plain-{html}-at-{where}")
        for where in ("document.body", "document", "window")
        for html, expected in (
            ("<a href=/y class=z title=t aria-label=x>x</a>", effect(leads="page")),
            ("<form action=/y role=search><button>x</button></form>", effect("get")),
        )
    ),
    pytest.param(
        "<div id=app>" + "<a href=/y>x</a>" * 30 + "</div>" + listens("app"), effect(leads="page"), id="root-of-an-app"
    ),
    pytest.param(
        "<div id=app>" + "<a href=/y>x</a>" * 9 + "</div>" + listens("app"),
        effect("", "page", "", "press"),
        id="list-that-listens",
    ),
    pytest.param("<a href='#y'>x</a>" + listens("window", "hashchange"), effect("", "here", "", "press"), id="routes"),
    pytest.param(
        "<a href='#y'>x</a>" + listens("navigation", "navigate"), effect("", "here", "", "press"), id="router"
    ),
    pytest.param("<a href='/y'>x</a>" + listens("window", "hashchange"), effect("", "page"), id="no-fragment"),
    pytest.param("<button>x</button>" + listens("document", "keydown"), effect(), id="keys-are-no-press"),
    pytest.param("<button>x</button>" + listens("document", "submit"), effect(), id="nothing-is-submitted"),
    pytest.param(
        "<form><button>x</button></form>" + listens("document", "submit"), effect("get"), id="page-listens-to-get"
    ),
    pytest.param(
        "<form data-remote><button>x</button></form>" + listens("document", "submit"),
        effect("get", "", "", "press"),
        id="page-listens-to-marked-form",
    ),
    pytest.param("<form onsubmit='y()'><button type=button>x</button></form>", effect(), id="sends-nothing"),
    pytest.param("<form onreset='y()'><input type=reset value=x></form>", effect("", "", "", "press"), id="reset"),
    pytest.param("<button onmouseover='y()'>x</button>", effect("", "", "", "press", "hover"), id="hover"),
    pytest.param("<p onmouseover='y()'><button>x</button></p>", effect("", "", "", "hover"), id="hover-around"),
    pytest.param("<button onfocus='y()'>x</button>", effect("", "", "", "press"), id="focus"),
    pytest.param(
        "<input type=checkbox aria-label=x>" + listens("document", "change"),
        effect("", "", "", "press", "edit"),
        id="checkbox-changes",
    ),
    pytest.param(
        "<select aria-label=x><option>y</select>" + listens("document", "change"),
        effect("", "", "choice", "press", "edit"),
        id="drop-down-changes",
    ),
    pytest.param("<input aria-label=x onchange='y()'>", effect("", "", "text", "edit"), id="field-changes"),
    pytest.param("<form oninput='y()'><input aria-label=x></form>", effect("", "", "text", "edit"), id="form-listens"),
    pytest.param(
        "<input aria-label=x>" + listens("document", "input"), effect(takes="text"), id="page-listens-to-text"
    ),
    pytest.param("<button commandfor=y command=--z>x</button>", effect("", "", "", "press"), id="custom-command"),
    pytest.param(
        "<p id=h><button>x</button></p><script>const r = h.attachShadow({mode: 'open'});"
        "r.innerHTML = '<b><slot></slot></b>'; r.firstChild.onclick = () => 0</script>",
        effect("", "", "", "press"),
        id="slot-of-an-open-root",
    ),
    pytest.param(
        "<p id=h><button>x</button></p><script>const r = h.attachShadow({mode: 'closed'});"
        "r.innerHTML = '<b><slot></slot></b>'; r.firstChild.onclick = () => 0</script>",
        effect("", "", "", "press"),
        id="slot-of-a-closed-root",
    ),
    pytest.param(
        "<div role=button tabindex=0 aria-label=x>" + "<i>y</i>" * 300 + "</div>",
        effect("", "", "", "press", "edit", "hover"),
        id="too-large-to-be-looked-through",
    ),
]


async def seen(page: Page, site: Site, html: str, *, effects: bool = True) -> Observation:
    site.pages = {"/": f"<!doctype html><title>T</title>{html}", "/frame": f"<!doctype html><title>F</title>{html}"}
    await page.goto(site.url())
    return await Observer(page, ObserveSettings(effects=effects)).observe()


@pytest.mark.parametrize(("html", "expected"), sampled(CASES))
async def test_what_using_a_control_sets_off(page: Page, site: Site, html: str, expected: Effect) -> None:
    observation = await seen(page, site, html)
    found = [one.effect for one in observation.elements if one.key.name == "x"]
    assert found[:1] == [expected]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_listeners_of_the_window_of_a_frame_are_known(page: Page, site: Site, host: str) -> None:
    """A window listens for its own document only; localhost is another site in another process."""
    site.pages["/frame"] = "<!doctype html><button>x</button>" + listens("window")
    site.pages["/"] = f"<!doctype html><a href=/y>outer</a><iframe src='{site.url('/frame', host=host)}'></iframe>"
    await page.goto(site.url())
    observation = await Observer(page, ObserveSettings(effects=True)).observe()
    effects = {one.key.name: one.effect for one in observation.elements}
    assert effects["x"] == effect("", "", "", "press")


async def test_a_listener_that_comes_later_is_known_at_the_next_observation(page: Page, site: Site) -> None:
    await seen(page, site, "<button id=e>x</button>")
    observer = Observer(page, ObserveSettings(effects=True))
    assert (await observer.observe()).elements[0].effect == effect()
    await page.evaluate("() => document.getElementById('e').addEventListener('click', () => {})")
    assert (await observer.observe()).elements[0].effect == effect("", "", "", "press")


async def test_where_not_all_listeners_are_known_everything_counts_as_heard(
    page: Page, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envs.observer.process_observation.MAX_SCANNED_NODES", 3)
    observation = await seen(page, site, "<a href=/y>x</a>" + "<p>more</p>" * 20)
    assert observation.elements[0].effect == effect("", "page", "", "press", "edit", "hover")


async def test_controls_beyond_the_text_have_their_effects_too(page: Page, site: Site) -> None:
    await seen(page, site, "".join(f"<p>row {n} {POSTS}</p>" for n in range(200)))
    observation = await Observer(page, ObserveSettings(effects=True, max_chars=500)).observe()
    assert not all(one.shown for one in observation.elements)
    assert [one.effect for one in observation.elements] == [effect("post")] * 200


@pytest.mark.parametrize(
    "html", ["<form method=post onclick='y()'><button>x</button></form>", "<div onclick=1>x</div>"]
)
async def test_asking_for_effects_changes_nothing_else(page: Page, site: Site, html: str) -> None:
    """Recorded traces and trained models depend on text, keys and digest."""
    with_effects, without = await seen(page, site, html), await seen(page, site, html, effects=False)
    assert (with_effects.text, with_effects.digest) == (without.text, without.digest)
    assert [one.key for one in with_effects.elements] == [one.key for one in without.elements]
    assert [one.effect for one in without.elements] == [None] * len(without.elements)


HIDDEN_NAVIGATION = [
    ("shown", "", frozenset[str]()),
    ("throws", "Object.defineProperty(window, 'navigation', { get() { throw 1; } });", frozenset({"press"})),
    ("missing", "Object.defineProperty(window, 'navigation', { value: undefined });", frozenset({"press"})),
    (
        "another",
        "Object.defineProperty(window, 'navigation', { value: { addEventListener() {} } });",
        frozenset({"press"}),
    ),
]


@pytest.mark.parametrize(
    ("script", "listened"), [case[1:] for case in HIDDEN_NAVIGATION], ids=[case[0] for case in HIDDEN_NAVIGATION]
)
async def test_a_page_that_hides_its_navigation_counts_as_listening_to_it(
    page: Page, site: Site, script: str, listened: frozenset[str]
) -> None:
    site.pages["/"] = f"<script>{script}</script><a href=/next rel=x data-x>Next</a>"
    await page.goto(site.url())
    seen = await Observer(page, ObserveSettings(timeout_s=30, effects=True)).observe()
    effect = seen.elements[0].effect
    assert effect is not None and effect.listened == listened
