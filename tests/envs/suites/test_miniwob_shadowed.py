"""Elements of a task page that shadow names of the DOM do not prevent reading and starting the episode."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.tasks import TaskRef
from envs.suites.miniwob import MiniwobEnvironment, MiniwobSuite

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
TASK = TaskRef(suite="miniwob", name="enter-text", seed=0)
SHADOWS = {
    "form": "<form>typed {}</form>",
    "row": "<form role=row aria-expanded=true>{}</form>",
    "menu": "<form role=menuitem>{}</form>",
    "document": "{}",
}
NAMES = (
    "id innerText childNodes childElementCount getAttribute getClientRects tagName type value labels body "
    "activeElement getElementById querySelector querySelectorAll blur contains nodeType placeholder"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MiniwobEnvironment]:
    async with (
        Chromium.launch() as chromium,
        MiniwobSuite(chromium, tmp_path_factory.mktemp("miniwob")) as suite,
    ):
        yield await suite.environment()


@pytest.mark.parametrize("markup", SHADOWS.values(), ids=SHADOWS.keys())
@pytest.mark.parametrize("tag", ["input", "img", "form"])
async def test_an_episode_is_read_and_started_again(environment: MiniwobEnvironment, markup: str, tag: str) -> None:
    await environment.reset(TASK)
    inner = "".join(f"<{tag} name={name} id={name}></{tag}>" for name in NAMES.split())
    await environment.session.page.evaluate(
        "html => document.getElementById('area').insertAdjacentHTML('beforeend', html)", markup.format(inner)
    )
    state = await environment._harness.state()  # type: ignore[union-attr]  # pyright: ignore
    assert state is not None and not state.done
    assert "innerText" in state.parts or tag == "img"
    assert (await environment.reset(TASK)).instruction
    assert not await environment.done()
