"""Elements of a task page that shadow names of the DOM do not prevent reading and starting the episode."""

from __future__ import annotations

import pytest

from envs.core.tasks import TaskRef
from envs.suites.miniwob import MiniwobEnvironment

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


@pytest.mark.parametrize("markup", SHADOWS.values(), ids=SHADOWS.keys())
@pytest.mark.parametrize("tag", ["input", "img", "form"])
async def test_an_episode_is_read_and_started_again(miniwob: MiniwobEnvironment, markup: str, tag: str) -> None:
    await miniwob.reset(TASK)
    inner = "".join(f"<{tag} name={name} id={name}></{tag}>" for name in NAMES.split())
    await miniwob.session.page.evaluate(
        "html => document.getElementById('area').insertAdjacentHTML('beforeend', html)", markup.format(inner)
    )
    state = await miniwob._harness.state()  # type: ignore[union-attr]  # pyright: ignore
    assert state is not None and not state.done
    assert "innerText" in state.parts or tag == "img"
    assert (await miniwob.reset(TASK)).instruction
    assert not await miniwob.done()
