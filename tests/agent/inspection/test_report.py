"""The report: opened in a real browser, with pages and answers that are scripts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from agent.inspection.report import build, explain_failures, write_report
from agent.run.discover_traces import EpisodeFile
from agent.run.run_store import RunFolder
from envs.core.actions import Click, Type
from envs.core.errors import BadInput
from envs.core.tasks import Score
from envs.core.trace import Failure, Footer, Loop, Totals
from envs.core.trace_store import BlobStore, TraceWriter
from tests.agent.episodes import Play, png, write_run

HOSTILE = (
    "</pre></template></details></title></style><script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\"><a href=\"javascript:document.title='owned'\">{{7*7}}{% raw %}</a>"
    "<svg/onload=document.title='owned'>' \" & javascript:document.title='owned'"
)
LOOP = Failure(
    category="stuck_midway", key_step=2, reason="round and round", loop=Loop(entry=2, period=2, repetitions=2)
)
BOX = (100.0, 60.0, 80.0, 30.0)
"""Of a screenshot of 800x600 pixels that shows 400x300 CSS pixels."""

TITLE = "Mira report"


class Watched:
    """A page with its requests and console messages."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.messages: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))

    @property
    def left(self) -> list[str]:
        """Requests for anything but the file itself and its data URIs."""
        return [url for url in self.requests if not url.startswith(("file:", "data:"))]


@pytest.fixture
async def watched(page: Page) -> Watched:
    """Async, because listeners need a running event loop."""
    return Watched(page)


@pytest.fixture
def hostile(tmp_path: Path) -> RunFolder:
    """Three episodes in which every text is hostile."""
    picture = png(800, 600)
    plays = [
        Play(task="click-test", text=HOSTILE, policy=HOSTILE, picture=picture, box=BOX),
        Play(task="login-user", text=HOSTILE, outcome="failure", picture=picture, box=BOX),
        Play(task="enter-text", text=HOSTILE, outcome=None),
    ]
    return write_run(tmp_path / "r", plays)


@pytest.fixture
def plain(tmp_path: Path) -> RunFolder:
    """A success, a failure with a loop, and a broken episode of another task."""
    seven = tuple(Click(ref=1) for _ in range(7))
    return write_run(
        tmp_path / "r",
        [
            Play(seed=0, attempt=1, actions=(Click(ref=1), Type(ref=2, text="bob")), text="log in"),
            Play(
                seed=0, attempt=2, outcome="failure", failure=LOOP, actions=seven,
                z=((False, False), *[(True, False)] * 7), text="log in",
            ),
            Play(task="click-test", seed=0, outcome="broken", text="press it", policy="other"),
        ],
    )  # fmt: skip


@pytest.mark.browser
async def test_hostile_text_stays_text(watched: Watched, hostile: RunFolder) -> None:
    page = watched.page
    await page.goto(write_report([hostile.path]).path.as_uri())
    assert await page.locator(".row").count() == 3
    for row in await page.locator(".row").all():
        await row.click()
        await expect(row).to_have_attribute("aria-current", "true")  # the event that shows the episode is a task later
        for fold in await page.locator("#episode-pane details").all():
            await fold.evaluate("fold => fold.open = true")
        assert HOSTILE in await page.locator("#episode-pane").inner_text()
    assert await page.locator("#episode-pane a:not([href^='#'])").count() == 0, "links lead to the report's own steps"
    assert await page.locator("#episode-pane script, #episode-pane img, [onerror], [onload]").count() == 0
    assert await page.title() == TITLE
    assert (watched.left, watched.messages) == ([], [])


@pytest.mark.browser
async def test_injected_markup_does_not_run(watched: Watched, plain: RunFolder) -> None:
    """The content-security policy is a second defence: markup inserted into the finished file has no effect."""
    path = write_report([plain.path]).path
    slipped = (
        "<script>document.title='owned'</script><p style='color:red' onclick=\"document.title='owned'\">press</p>"
        "<a id=slip href=\"javascript:document.title='owned'\">go</a><img src='http://127.0.0.1:9/x.png'>"
    )
    path.write_text(path.read_text().replace("<main id", slipped + "<main id"))
    page = watched.page
    await page.goto(path.as_uri())
    await page.locator("#slip").evaluate("link => link.click()")
    await page.get_by_text("press", exact=True).evaluate("p => p.click()")
    assert await page.title() == TITLE
    assert await page.locator(".row").count() == 3, "the report's own script runs"
    assert len(watched.messages) >= 4, "the policy refused each of them"


@pytest.mark.browser
async def test_filters_and_sorting(watched: Watched, plain: RunFolder) -> None:
    page = watched.page
    await page.goto(write_report([plain.path]).path.as_uri())
    visible = page.locator(".row:visible")
    await page.fill("#filter", "press")
    assert await visible.count() == 1
    assert await page.locator("#shown").inner_text() == "1 of 3 episodes"
    await page.fill("#filter", "")
    await page.get_by_text("success", exact=True).first.click()
    assert await visible.count() == 2
    await page.select_option("#by-failure", "stuck_midway")
    await expect(visible.locator("b")).to_have_text(["miniwob/login-user/0"])
    await page.select_option("#by-failure", "")
    await page.select_option("#by-policy", "other")
    await expect(visible.locator("b")).to_have_text(["miniwob/click-test/0"])
    await page.select_option("#by-policy", "")
    await page.select_option("#sort", "steps")
    assert [int(await row.get_attribute("data-steps") or 0) for row in await visible.all()] == [7, 2]
    assert watched.messages == []


@pytest.mark.browser
async def test_the_keyboard_is_enough(watched: Watched, plain: RunFolder) -> None:
    page = watched.page
    await page.goto(write_report([plain.path]).path.as_uri())
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    assert page.url.endswith("#e2")
    await page.keyboard.press("n")
    await page.keyboard.press("n")
    await page.keyboard.press("Enter")
    assert await page.locator("[data-step='2']").get_attribute("open") is None, "the key step was open, and is closed"
    await page.keyboard.press("k")
    assert page.url.endswith("#e1")
    await page.keyboard.press("Escape")
    assert await page.locator("#overview-pane").is_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("press")
    assert await page.locator(".row:visible").count() == 1


@pytest.mark.browser
async def test_an_episode_shows_its_key_step_its_loop_and_the_reference(watched: Watched, plain: RunFolder) -> None:
    page = watched.page
    await page.goto(write_report([plain.path]).path.as_uri() + "#e2.5")
    assert await page.locator("[data-step='5']").get_attribute("open") is not None, "the address opens a step"
    assert await page.locator("details.key").get_attribute("data-step") == "2"
    assert await page.locator("details.looped").evaluate_all("steps => steps.map(s => s.dataset.step)") == list("2345")
    assert await page.locator("path.loop").count() == 2, "one arc a round"
    assert "2 steps × 2" in await page.locator("details.key > summary").inner_text()
    assert await page.locator(".ref code").all_inner_texts() == [
        'do(action="Click", element="1")',
        'do(action="Type", argument="bob", element="2")',
    ]
    lit = await page.locator("rect.cell.new").count()
    assert lit == 1, "one milestone was reached, in the column of the step that did it"
    assert watched.messages == []


@pytest.mark.browser
async def test_the_box_lies_over_the_target_at_any_size(watched: Watched, hostile: RunFolder) -> None:
    page = watched.page
    await page.goto(write_report([hostile.path]).path.as_uri() + "#e1.1")
    for width in (700, 1500):
        await page.set_viewport_size({"width": width, "height": 900})
        shot = await page.locator(".shot image").first.bounding_box()
        box = await page.locator(".shot .aim").first.bounding_box()
        assert shot is not None and box is not None
        scale = shot["width"] / 400
        x, y, wide, high = BOX
        assert box["x"] - shot["x"] == pytest.approx((x - 3) * scale, abs=3)
        assert box["y"] - shot["y"] == pytest.approx((y - 3) * scale, abs=3)
        assert (box["width"], box["height"]) == pytest.approx(((wide + 6) * scale, (high + 6) * scale), abs=4)


@pytest.mark.browser
async def test_dark_and_light_are_readable(watched: Watched, plain: RunFolder) -> None:
    """Contrast of text and background by WCAG."""
    page = watched.page
    await page.goto(write_report([plain.path]).path.as_uri())
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        colours = await page.evaluate(
            "() => [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.querySelector('.dim')).color]"
        )
        ink, paper, muted = (luminance(colour) for colour in colours)
        assert contrast(ink, paper) > 10 and contrast(muted, paper) > 4.5
        assert (paper > 0.5) == (scheme == "light")


SIZES = (320, 420, 700, 761, 1080, 1280)
VIEWS = ("#overview", "#e1", "#e2")


@pytest.mark.browser
async def test_nothing_scrolls_sideways_however_narrow_the_screen_and_long_the_words(
    watched: Watched, tmp_path: Path
) -> None:
    """Symptom: the table of tasks made a phone, 420 px wide, scroll sideways. Each text is one word of 300 letters."""
    word = "Rindfleischetikettierungsueberwachungsaufgaben" * 7
    plays = [
        Play(task=word[:90], seed=seed, text=word, policy=word, picture=png(800, 600), box=BOX, outcome=outcome)
        for seed, outcome in enumerate(("failure", "success"))
    ]
    page = watched.page
    address = write_report([write_run(tmp_path / word[:60], plays).path]).path.as_uri()
    for width in SIZES:
        await page.set_viewport_size({"width": width, "height": 800})
        for view in VIEWS:
            await page.goto(address + view)
            for fold in await page.locator("details").all():
                await fold.evaluate("fold => fold.open = true")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{view} is {wide} px wide on a screen of {width}"


@pytest.mark.browser
async def test_a_screenshot_is_enlarged_by_click_and_by_keyboard(watched: Watched, hostile: RunFolder) -> None:
    page = watched.page
    await page.set_viewport_size({"width": 420, "height": 800})
    await page.goto(write_report([hostile.path]).path.as_uri() + "#e1.1")
    viewer, small = page.locator("#viewer"), page.locator(".enlarge").first
    await small.scroll_into_view_if_needed()
    place = await page.evaluate("scrollY")
    await small.click()
    assert await viewer.is_visible()
    enlarged, before = await viewer.locator(".shot").bounding_box(), await small.bounding_box()
    assert enlarged is not None and before is not None
    assert enlarged["width"] >= 400 > before["width"], "the page's own size, with the rest a scroll away"
    assert await viewer.locator(".aim").count() == 1, "with what the action aimed at"
    aim = await viewer.locator(".aim").bounding_box()
    assert aim is not None and aim["x"] >= 0 and aim["x"] + aim["width"] <= 420, "which is in view"
    assert await page.evaluate("[document.documentElement.scrollWidth, scrollY]") == [420, place]
    await viewer.locator(".shot").click()
    await expect(viewer).to_be_hidden()
    await expect(viewer.locator(".shot")).to_have_count(0)  # a dialog's `close` event comes a task later
    await small.focus()
    await page.keyboard.press("Enter")
    assert await viewer.is_visible()
    await page.keyboard.press("j")
    await page.keyboard.press("Escape")
    await expect(viewer).to_be_hidden()
    assert page.url.endswith("#e1.1"), "its keys are its own"
    assert await small.evaluate("shot => shot === document.activeElement"), "the focus comes back"
    assert (watched.left, watched.messages) == ([], [])


@pytest.mark.browser
async def test_a_small_screenshot_is_enlarged_to_the_window(watched: Watched, hostile: RunFolder) -> None:
    page = watched.page
    await page.goto(write_report([hostile.path]).path.as_uri() + "#e1.1")
    await page.locator(".enlarge").first.click()
    enlarged = await page.locator("#viewer .shot").bounding_box()
    assert enlarged is not None and enlarged["width"] > 1000
    assert enlarged["width"] / enlarged["height"] == pytest.approx(4 / 3, rel=0.01)


@pytest.mark.browser
async def test_a_report_of_one_episode_opens_on_it(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    address = write_report([write_run(tmp_path / "r", [Play(text="Log in", picture=png(800, 600))]).path]).path.as_uri()
    await page.goto(address)
    assert await page.locator("#episode-pane h2").inner_text() == "Log in"
    assert await page.locator("#overview-pane").is_hidden() and await page.locator("#filter").is_hidden()
    await page.keyboard.press("Escape")
    assert await page.locator("#overview-pane").is_visible(), "the overview is a key away"
    await page.goto(address + "#overview")
    assert await page.locator("#overview-pane").is_visible()


@pytest.mark.browser
async def test_a_report_of_several_episodes_opens_on_the_overview(watched: Watched, plain: RunFolder) -> None:
    await watched.page.goto(write_report([plain.path]).path.as_uri())
    assert await watched.page.locator("#overview-pane").is_visible()
    assert await watched.page.locator("#filter").is_visible()


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: float, b: float) -> float:
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def test_why_it_failed_comes_from_the_analyzer(plain: RunFolder) -> None:
    text = write_report([plain.path], analyses=explain_failures([plain.path])).path.read_text()
    assert "Final check: FAILED" in text


def test_a_reference_of_another_run_is_shown_next_to_a_failure(tmp_path: Path) -> None:
    write_run(tmp_path / "failed", [Play(outcome="failure")])
    write_run(tmp_path / "oracle", [Play(policy="oracle")])
    alone = write_report([tmp_path / "failed"]).path.read_text()
    beside = write_report([tmp_path / "failed"], references=[tmp_path / "oracle"]).path.read_text()
    assert "(oracle)" not in alone and "oracle/login-user-0-a1 (oracle)" in beside


def test_several_runs_are_one_report(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [Play(seed=0)]).path for name in ("a", "b")]
    report = write_report(runs, out=tmp_path / "both.html")
    assert report.episodes == 2
    assert 'data-run="a"' in (text := report.path.read_text()) and 'data-run="b"' in text


@pytest.mark.parametrize(("screenshots", "count", "left_out"), [("all", 7, 0), ("key", 3, 4), ("none", 0, 7)])
def test_screenshots_can_be_limited(tmp_path: Path, screenshots: str, count: int, left_out: int) -> None:
    play = Play(
        outcome="failure", actions=[Click(ref=1)] * 7, z=[(False,)] * 8, picture=png(40, 30),
        failure=Failure(category="other", key_step=3, reason="so it is"),
    )  # fmt: skip
    run = write_run(tmp_path / "r", [play])
    report = write_report([run.path], screenshots=screenshots)  # pyright: ignore[reportArgumentType]
    assert (report.pictures, report.pictures_left_out) == (count, left_out)
    assert report.path.read_text().count("<image ") == count


def test_large_pictures_are_made_smaller(tmp_path: Path) -> None:
    import os

    from PIL import Image

    Image.frombytes("RGB", (1500, 500), os.urandom(1500 * 500 * 3)).save(noise := tmp_path / "noise.png")
    run = write_run(tmp_path / "r", [Play(picture=noise.read_bytes(), actions=[Click(ref=1)], z=[(False,), (True,)])])
    report = write_report([run.path])
    assert 0 < report.picture_bytes < noise.stat().st_size / 2
    assert "data:image/webp;base64," in report.path.read_text()


def test_damage_is_listed_and_the_rest_is_written(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r", [Play(seed=seed, picture=png(40 + seed, 30)) for seed in range(3)])
    run.trace("login-user-1-a1").write_text('{"kind":"header"}\n')
    pictures = [path for path in run.blobs.iterdir() if path.read_bytes().startswith(b"\x89PNG")]
    for path in pictures:
        path.write_bytes(b"torn")
    report = write_report([run.path])
    text = report.path.read_text()
    assert report.episodes == 2
    assert len(report.problems) == 5, "one trace, and a picture at each of four steps"
    assert "login-user-1-a1.jsonl:1" in text and "does not match its name" in text


def test_a_blob_that_is_not_a_picture_is_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r", [Play(picture=b"<svg onload=alert(1)>")])
    report = write_report([run.path])
    assert report.pictures == 0 and "is not an image" in report.problems[0]
    assert "data:image/" not in report.path.read_text().replace("data:,", "")


def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r", [Play(text="x" * 100_000)])
    text = write_report([run.path]).path.read_text()
    assert "92,000 more characters in the trace" in text


def test_an_unfinished_episode_names_resume(hostile: RunFolder) -> None:
    assert "resume the run to finish it" in write_report([hostile.path]).path.read_text()


def test_the_verdict_is_that_of_who_judged(tmp_path: Path) -> None:
    """With `outcome = "judge"` the checker's score is recorded beside the verdict."""
    run = write_run(tmp_path / "r", [Play(outcome=None)])
    score = Score(status="failure", reward=0.0, evidence="no order was found")
    with TraceWriter(run.trace(Play().job.episode_id), BlobStore(run.blobs)) as trace:
        trace.append(
            Footer(
                outcome="success",
                ended_by="stop",
                judged_by="judge",
                score=score,
                verdict="YES: it was ordered",
                totals=Totals(),
                at="",
            )
        )
    text = write_report([run.path]).path.read_text()
    assert "judged by judge: YES: it was ordered" in text and "judge: no order was found" not in text


def test_without_traces_no_report_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no traces"):
        write_report([tmp_path])
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_one_line(plain: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written: No such file"):
        write_report([plain.path], out=tmp_path / "nowhere" / "report.html")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EIO], ids=["missing", "failing disk"])
@pytest.mark.parametrize(("owner", "method"), [(build, "_asset"), (EpisodeFile, "read")], ids=["asset", "trace"])
def test_a_file_that_cannot_be_read_is_not_blamed_on_out(
    plain: RunFolder, monkeypatch: pytest.MonkeyPatch, owner: object, method: str, number: int
) -> None:
    error = OSError(number, os.strerror(number), "read.me")

    def fails(_: object) -> None:
        raise error

    monkeypatch.setattr(owner, method, fails)
    before = sorted(plain.path.iterdir())
    with pytest.raises(OSError, match=r"read\.me") as raised:
        write_report([plain.path])
    assert raised.value is error
    assert sorted(plain.path.iterdir()) == before


def test_a_target_that_cannot_be_replaced_is_blamed_on_out(plain: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(BadInput, match=r"report\.html' cannot be written: Is a directory"):
        write_report([plain.path], out=tmp_path / "report.html")
    assert list(tmp_path.glob("*.part")) == []
