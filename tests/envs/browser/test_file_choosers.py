"""A click that opens a file chooser says that it did, and what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.browser.uploads import CHOOSER_OPENED
from envs.core.actions import Status
from tests.envs.browser.browsing import Opener, click, upload, visit
from tests.envs.browser.web import Web

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PAGE = """<button onclick="f.click()">Choose photo</button><input id=f type=file hidden>
    <label>Resume<input id=g type=file></label><button onclick="this.textContent = 'Saved'">Save</button>"""


async def test_a_click_that_opens_a_file_chooser_says_so(web: Web, opener: Opener, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    session = await opener(upload_folder=tmp_path)
    web["/"] = PAGE
    await visit(session, web.url())
    for name in ("Choose photo", "Resume"):
        result = await click(session, name)
        assert (result.status, result.message) == (Status.OK, CHOOSER_OPENED)
    for name in ("Choose photo", "Resume"):
        result = await upload(session, name, "a.txt")
        assert (result.status, result.message) == (Status.OK, "")
    assert (await click(session, "Save")).message == ""
    assert await session.page.evaluate("[f.files.length, g.files.length]") == [1, 1]
