"""Markup that is typed into a task page cannot run as script and forge the reward."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.browser.chromium import Chromium
from envs.core.actions import Type
from envs.core.tasks import TaskRef
from envs.suites.miniwob import MiniwobEnvironment, MiniwobSuite, pages
from envs.suites.miniwob.content_policy import content_security_policy, inline_script_hashes
from envs.suites.miniwob.pages import html_root, task_names

browser = pytest.mark.browser
FORGERIES = (
    '<img src=x onerror="core.endEpisode(1,false,`forged`)">',
    "<svg onload=core.endEpisode(1,false,`forged`)>",
    "<script>core.endEpisode(1,false,`forged`)</script>",
    '<iframe srcdoc="<script>parent.core.endEpisode(1,false,`forged`)</script>"></iframe>',
    '<a href="javascript:core.endEpisode(1,false,`forged`)" onfocus="core.endEpisode(1,false,`forged`)">x</a>',
    '<details open ontoggle="core.endEpisode(1,false,`forged`)">x</details>',
)
FIELD_ROLES = frozenset({"textbox", "searchbox", "spinbutton"})


async def type_everywhere(miniwob: MiniwobEnvironment, text: str) -> int:
    """Types *text* and Enter into every visible text field; returns their number."""
    fields = [e.ref for e in (await miniwob.observe()).elements if e.key.role in FIELD_ROLES]
    for ref in fields:
        await miniwob.observe()
        await miniwob.execute(Type(ref=ref, text=text, enter=True))
    return len(fields)


async def forged(miniwob: MiniwobEnvironment, name: str, text: str) -> bool:
    await miniwob.reset(TaskRef(suite="miniwob", name=name, seed=0))
    if await type_everywhere(miniwob, text) == 0:
        return False
    score = await miniwob.score(None)
    return score is not None and score.evidence.endswith("forged")


@browser
@pytest.mark.parametrize("text", FORGERIES)
@pytest.mark.asyncio(loop_scope="module")
async def test_typed_markup_ends_no_episode_of_the_terminal(miniwob: MiniwobEnvironment, text: str) -> None:
    assert not await forged(miniwob, "terminal", text)


@browser
@pytest.mark.asyncio(loop_scope="module")
async def test_without_the_policy_typed_markup_forges_the_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the unchanged pages of the package."""

    def lax(_html: str) -> str:
        return "img-src *"

    monkeypatch.setattr(pages, "content_security_policy", lax)
    async with Chromium.launch() as chromium, MiniwobSuite(chromium, tmp_path) as suite:
        assert await forged(await suite.environment(), "terminal", FORGERIES[0])


@browser
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.heavy)])
@pytest.mark.asyncio(loop_scope="module")
async def test_no_task_page_runs_typed_markup(miniwob: MiniwobEnvironment, every: int) -> None:
    """Markup in every text field. The policy of all pages is made by one function; a sixth is part of `make test`."""
    text = "".join(FORGERIES)
    assert [name for name in task_names(html_root())[::every] if await forged(miniwob, name, text)] == []


@browser
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_the_policy_refuses_no_script_of_the_pages(miniwob: MiniwobEnvironment) -> None:
    """Except for jQuery's test of inline handlers, which expects a refusal under a policy."""
    record = (
        "window.refused = []; addEventListener('securitypolicyviolation', e => refused.push([e.sourceFile, e.sample]))"
    )
    await miniwob.session.context.add_init_script(record)
    for name in task_names(html_root()):
        await miniwob.reset(TaskRef(suite="miniwob", name=name, seed=0))
        refused = await miniwob.session.page.evaluate("window.refused")
        assert [source for source, _ in refused if not source.endswith("/jquery.js")] == [], name


def test_scripts_are_hashed_as_the_browser_decodes_them() -> None:
    """Expected values from: printf 'a\\nb' | openssl dgst -sha256 -binary | base64."""
    assert inline_script_hashes(b"<script>a\r\nb</script><script src=x></script><p>c</p>") == (
        "fhj3NzEbLcOy8mndeDlrA1HxT7Zu+oefdoyyMYGIPHg=",
    )
    assert len(inline_script_hashes("<script>é</script>".encode())) == 2


def test_only_pages_with_the_color_picker_may_evaluate() -> None:
    assert "unsafe-eval" not in content_security_policy(b"<script>a</script>")
    assert "unsafe-eval" in content_security_policy(b"<script src=../core/jscolor.min.js></script>")
