"""Policies that see, in real Chromium: coordinates come back exactly, and tiny checkpoints of four families play."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.async_api import Browser

from agent.config import RunConfig
from agent.episode.points import PointScale, is_at_point
from agent.episode.policy import ModelPolicy
from agent.run.components import open_components
from agent.run.discover_traces import discover_traces
from agent.run.runner import run_open
from envs.core.action_languages import PROGRAM
from envs.core.actions import ClickAt
from envs.core.errors import BadInput
from models.local.vision_loading import load_processor
from models.providers.scripted_model import ScriptedModel
from models.vision.checkpoints import vision_profile
from models.vision.coordinates import CoordinateSpace, Corners, ImageFrame, Size
from models.vision.pictures import picture_for, picture_size
from models.vision.profiles import VisionProfile, profile_named
from tests.agent.shop import config
from tests.conftest import Site
from tests.models.local.test_local import save_checkpoint
from tests.models.vision.screenshots import centre_of, contains, screenshot_frame
from tests.tiny_models.pictures import FAMILIES, red_square, with_context

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = ((1280, 800), (800, 1200), (375, 667), (1001, 333))
TARGETS = ((0, 0, 1, 1), (17, 331, 2, 1), (200.5, 100.25, 3, 3), (374, 332, 1, 1), (300, 7, 40, 21))
"""Left, top, width and height in CSS pixels, all within the smallest view."""
BOARD = """<!doctype html><title>Board</title><button style="position:absolute;left:20px;top:20px">Save</button>
<canvas width=300 height=200 style="position:absolute;left:40px;top:90px"
onclick="document.title = [event.clientX, event.clientY]"></canvas>"""

VIEW = {"width": 400, "height": 320}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    built: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in built:
            built[name] = with_context(FAMILIES[name](tmp_path_factory.mktemp("checkpoint")), 32_768)
        return built[name]

    return folder


def declared(folder: Path, name: str = "auto") -> VisionProfile:
    profile = vision_profile(f"local:{folder}", name)
    assert profile is not None
    return profile


def resized_by(processor: Any, png: bytes) -> Size:
    """The size to which a Qwen processor resizes a picture, read from its output."""
    images = processor.image_processor
    grid = images(images=[Image.open(io.BytesIO(png))], return_tensors="pt")["image_grid_thw"][0].tolist()
    return Size(grid[2] * images.patch_size, grid[1] * images.patch_size)


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("view", SIZES, ids=str)
async def test_a_point_of_the_picture_hits_its_target(
    chromium: Browser, folders: Callable[[str], Path], view: tuple[int, int], scale: int
) -> None:
    """Each target is drawn, photographed, and clicked at the point that each family names for its centre.

    A served UI-TARS-1.5 sees 1288 pixels for 1280: its whole numbers are too far apart for a target of one pixel."""
    context = await chromium.new_context(viewport={"width": view[0], "height": view[1]}, device_scale_factor=scale)
    page = await context.new_page()
    await page.set_content(
        "<body style='margin:0'>"
        + "".join(
            f"<div class=target style='position:absolute;left:{x}px;top:{y}px;width:{w}px;height:{h}px;background:red'>"
            "</div>"
            for x, y, w, h in TARGETS
        )
        + "<script>var hit; addEventListener('mousedown',"
        " e => hit = [...document.querySelectorAll('.target')].indexOf(e.target))</script>"
    )
    png = await page.screenshot()
    assert picture_size(png) == (view[0] * scale, view[1] * scale)
    families = [declared(folders(name)) for name in ("qwen2.5-vl", "qwen3-vl", "gemma-3", "smolvlm")]
    families.append(declared(folders("qwen2.5-vl"), "ui-tars-1.5"))
    served = profile_named("ui-tars-1.5")
    for profile in (*families, served, *map(profile_named, ("general", "claude", "ui-tars"))):
        image, frame = picture_for(profile, png, view)
        if profile.name == "qwen2.5-vl":
            processor = load_processor(folders(profile.name))
            assert resized_by(processor, png) == resized_by(processor, image.data) == frame.extent(profile.space)
        for number, (x, y, w, h) in enumerate(TARGETS):
            if profile is served and min(w, h) < 2:
                continue
            point = frame.to_model(profile.space, centre_of(Corners(x, y, x + w, y + h)))
            at = frame.to_view(profile.space, point)
            await page.mouse.click(at.x, at.y)
            hit = await page.evaluate("hit")
            assert hit == number, (profile.name, point, at)
    await context.close()


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("view", SIZES, ids=str)
def test_the_frame_of_a_processor_that_resizes_itself(
    folders: Callable[[str], Path], view: tuple[int, int], scale: int
) -> None:
    """A checkpoint's own limits give the size that its processor resizes to, without an image."""
    taken = Size(view[0] * scale, view[1] * scale)
    profile = declared(folders("qwen2.5-vl"))
    resized = resized_by(load_processor(folders("qwen2.5-vl")), red_square(int(taken.width), int(taken.height)))
    assert profile.sent_size(taken) == resized
    frame = screenshot_frame(taken, scale, resized)
    for x, y, w, h in TARGETS:
        box = Corners(x, y, x + w, y + h)
        seen = frame.to_view(CoordinateSpace.RESIZED, frame.to_model(CoordinateSpace.RESIZED, centre_of(box)))
        assert contains(box, seen)


@pytest.mark.parametrize(
    ("name", "screenshots", "axes"),
    [
        ("qwen2.5-vl", "plain", "of the picture, which is"),
        ("qwen3-vl", "both", "numbers from 0 to 1000"),
        ("gemma-3", "marks", "numbers from 0 to 1000"),
        ("smolvlm", "both", "numbers from 0 to 1,"),
    ],
)
async def test_a_tiny_model_that_sees_plays(
    *,
    shared_chromium: None,
    folders: Callable[[str], Path],
    site: Site,
    tmp_path: Path,
    name: str,
    screenshots: str,
    axes: str,
) -> None:
    """Its weights are random, and the grammar makes its answers valid."""
    site.pages["/"] = BOARD
    settings = config(
        policy=f"local:{folders(name)}",
        planner="none",
        judge="none",
        screenshots=screenshots,
        rationale=0,
        temperature=1.0,
        limits={"max_steps": 2},
        session={"viewport": VIEW},
        model_deadline_s=600,
    )
    run = await run_open(settings, "Press Save", site.url(), tmp_path)
    (found,) = discover_traces([run.folder])
    trace, blobs = found.read(), found.blobs
    assert trace.steps
    scale_of = profile_scale(declared(folders(name)), (400, 320))
    for intent, _ in trace.steps:
        (call,) = [call for call in intent.calls if call.role == "policy" and call.error is None]
        assert call.prompt_blob is not None and intent.seen.screenshot_blob is not None
        prompt = json.loads(blobs.read(call.prompt_blob))
        assert len(prompt[-1]["images"]) == (2 if screenshots == "both" else 1)
        assert axes in prompt[-1]["text"]
        assert (intent.seen.marked_blob is not None) == (screenshots == "both")
        spoken = PROGRAM.parse(call.completion).action
        assert intent.action == (scale_of(spoken) if is_at_point(spoken) else spoken)


def profile_scale(profile: VisionProfile, view: tuple[int, int]) -> Callable[[Any], Any]:
    sent = profile.sent_size(Size(*view))
    return PointScale(profile.space, ImageFrame(Size(*view), sent, sent if profile.resize else None)).to_view


async def test_a_click_in_the_coordinates_of_the_model_is_recorded_in_pixels(
    shared_chromium: None, site: Site, tmp_path: Path
) -> None:
    """A scripted model answers in 0 to 1000, on a view of 400 x 320 pixels."""
    site.pages["/"] = BOARD
    model = ScriptedModel(['do(action="Click At", x=500, y=625)', 'exit(message="done")'])
    policy = ModelPolicy(model, PROGRAM, "full", vision=profile_named("qwen3-vl"))
    settings = config(planner="none", judge="none", screenshots="plain", session={"viewport": VIEW})
    run = await run_open(settings, "Press the board", site.url(), tmp_path, policy=policy)
    (found,) = discover_traces([run.folder])
    (clicked, _), (last, _) = found.read().steps
    assert clicked.action == ClickAt(x=200, y=200) and last.seen.title == "200,200"
    assert clicked.calls[0].completion == 'do(action="Click At", x=500, y=625)'
    assert "1. click at 500,625" in model.requests[1].messages[-1].text, "the log has the model's coordinates"


@pytest.mark.parametrize("spec", ["embedded", "a text checkpoint"])
async def test_a_model_of_text_is_refused_before_anything_starts(tmp_path: Path, spec: str) -> None:
    policy = spec if spec == "embedded" else f"local:{save_checkpoint(tmp_path)}"
    shown = RunConfig.model_validate({"policy": policy, "planner": "none", "judge": "none", "screenshots": "plain"})
    with pytest.raises(BadInput, match=r"--screenshots plain shows images to the policy, and .* reads text only"):
        async with open_components(shown, "open"):
            pass
