"""An element is dragged onto another one, also where the viewport does not hold both."""

from __future__ import annotations

import pytest

from envs.core.actions import Drag, Status
from tests.envs.browser.browsing import Opener, ref_of, visit
from tests.envs.browser.web import Web

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ITEMS = "".join(f'<li draggable=true tabindex=0 role=button style="height:60px">Item {i}</li>' for i in range(40))
MOVED = """const moved = (one, onto) => { if (one && onto && one !== onto) document.title = `${one.textContent} onto
    ${onto.textContent}`.replace(/\\s+/g, ' ') };"""
BY_DROP = f"""<ul id=l>{ITEMS}</ul><script>{MOVED} let held;
    l.ondragstart = e => {{ held = e.target; e.dataTransfer.setData('text/plain', 'x') }};
    l.ondragover = e => e.preventDefault();
    l.ondrop = e => {{ e.preventDefault(); moved(held, e.target.closest('li')) }};</script>"""
BY_POINTER = f"""<ul id=l>{ITEMS.replace("draggable=true", "")}</ul><script>{MOVED} let from = null, held = null;
    l.onpointerdown = e => from = e;
    onpointermove = e => {{ if (from && Math.hypot(e.clientX - from.clientX, e.clientY - from.clientY) > 5) {{
      held = from.target; held.style.pointerEvents = 'none' }} }};
    onpointerup = e => {{ moved(held, document.elementFromPoint(e.clientX, e.clientY).closest('li')); from = null }};
    </script>"""


@pytest.mark.parametrize("page", [BY_DROP, BY_POINTER], ids=["drag and drop of HTML", "pointer events"])
@pytest.mark.parametrize(("one", "onto"), [(1, 30), (35, 2), (8, 15), (3, 5)])
async def test_a_drag_onto_what_is_out_of_view_takes_no_other_element(
    web: Web, opener: Opener, page: str, one: int, onto: int
) -> None:
    session = await opener()
    web["/"] = page
    seen = await visit(session, web.url())
    drag = Drag(ref=ref_of(seen, f"Item {one}"), to_ref=ref_of(seen, f"Item {onto}"))
    assert (await session.execute(drag)).status is Status.OK
    assert await session.page.title() == f"Item {one} onto Item {onto}"


async def test_nothing_is_pressed_where_the_target_of_a_drag_cannot_be_hit(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = """<button onmousedown="document.title = 'pressed'">From</button><button id=to>To</button>
        <div style="position:absolute;left:0;top:100px;height:2000px;width:10px"></div>"""
    seen = await visit(session, web.url())
    drag = Drag(ref=ref_of(seen, "From"), to_ref=ref_of(seen, "To"))
    await session.page.evaluate("to.style.pointerEvents = 'none'")
    assert (await session.execute(drag)).status is Status.COVERED
    assert await session.page.title() == ""
