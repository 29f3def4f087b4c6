"""The report: opened in a real browser, with pages and answers that are scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page

from agent.config import RunConfig
from agent.report import write_report
from agent.run_store import Manifest, RunFolder
from envs.actions import ActionResult, Click, Status
from envs.errors import BadInput
from envs.tasks import Milestone, Score, TaskRef
from envs.trace import (
    Commit,
    Failure,
    Flip,
    Footer,
    Header,
    Intent,
    Outcome,
    PlanRecord,
    Rating,
    Seen,
    Timings,
    Totals,
)
from envs.trace_store import BlobStore, TraceWriter

HOSTILE = "</pre></details><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{7*7}}"
AT = "2026-01-01T00:00:00Z"


def episode(folder: RunFolder, name: str, outcome: Outcome, *, ends: bool = True) -> None:
    """One episode of one step, every text of it hostile."""
    blobs = BlobStore(folder.blobs)
    text, keys = blobs.put_text(HOSTILE), blobs.put_text("[]")
    seen = Seen(url=HOSTILE, title=HOSTILE, digest="0" * 16, text_blob=text, keys_blob=keys, controls_total=1)
    rating = Rating(z=(True, False), flips=(Flip(milestone="m1", achieved=True, evidence=HOSTILE),))
    milestones = (Milestone(id="m1", text=HOSTILE), Milestone(id="m2", text="submitted"))
    with TraceWriter(folder.trace(f"{name}-0-a1"), blobs) as trace:
        trace.append(
            Header(
                run_id="r",
                episode_id=f"{name}-0-a1",
                task=TaskRef(suite="miniwob", name=name),
                instruction=HOSTILE,
                category="form",
                config={"policy": HOSTILE},
                versions={},
                started_at=AT,
            )
        )
        trace.append(PlanRecord(step=1, cause="initial", milestones=milestones, planner="reference"))
        trace.append(Intent(step=1, seen=seen, rating=rating, action=Click(ref=1), raw=HOSTILE, at=AT))
        result = ActionResult(status=Status.OK, message=HOSTILE)
        trace.append(Commit(step=1, result=result, timings=Timings(execute=0.5), at=AT))
        if ends:
            trace.append(
                Footer(
                    outcome=outcome,
                    ended_by="stop",
                    judged_by="checker",
                    score=Score(status="success", reward=1.0, evidence=HOSTILE),
                    answer=HOSTILE,
                    failure=Failure(category="other", key_step=1, reason=HOSTILE) if outcome == "failure" else None,
                    rating=rating,
                    totals=Totals(steps=1, seconds=0.5, tokens_in=10, tokens_out=2),
                    at=AT,
                )
            )


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "r")
    names = ("click-test", "login-user", "enter-text")
    folder.create(
        Manifest(run_id="r", created_at=AT, config=RunConfig(), suite="miniwob", names=names, seeds=(0,), versions={})
    )
    episode(folder, "click-test", "success")
    episode(folder, "login-user", "failure")
    episode(folder, "enter-text", "unjudged", ends=False)
    return folder


@pytest.mark.browser
async def test_hostile_text_stays_text_and_the_filter_works(page: Page, run: RunFolder) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    address = write_report(run.path).as_uri()
    await page.goto(address)
    assert await page.title() == "Mira run r"
    assert await page.locator(".episode").count() == 3
    await page.locator(".episode").first.locator("summary").first.click()
    assert HOSTILE in await page.locator(".episode").first.inner_text()
    assert await page.locator(".badge").all_inner_texts() == ["success", "failure", "unfinished"]
    await page.fill("#filter", "login-user")
    assert await page.locator(".episode:visible").count() == 1
    await page.fill("#filter", "")
    await page.locator('.outcome[value="success"]').uncheck()
    assert await page.locator(".episode:visible").count() == 2
    assert await page.title() == "Mira run r"
    assert requests == [address], "a report fetches nothing"


@pytest.mark.browser
async def test_what_slips_through_would_not_run(page: Page, run: RunFolder) -> None:
    """The content-security policy is the second line: markup put into the finished file does nothing."""
    path = write_report(run.path)
    path.write_text(path.read_text().replace("<main>", "<main><script>document.title='owned'</script>"))
    await page.goto(path.as_uri())
    assert await page.title() == "Mira run r"


def test_the_key_step_and_the_unfinished_episode_are_said(run: RunFolder) -> None:
    text = write_report(run.path).read_text()
    assert "began at step 1" in text
    assert "resume the run to finish it" in text
    assert "1/3" in text


def test_no_run_no_report(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no run"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []
