"""From a page in Chromium to examples: the target is where the screenshot shows the clicked element."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from envs.core.actions import ClickAt, Type
from tests.mira_command import mira
from training.grpo.examples import read_examples
from training.grpo.rewards import Rewarder, StepTarget
from training.grpo.rewards.ssl import SslReward

pytestmark = pytest.mark.browser
RUN = [
    *("run", "--suite", "miniwob", "--tasks", "click-button,enter-text", "--seeds", "1000000-1000001", "--policy"),
    *("oracle", "--planner", "reference", "--screenshots", "steps", "--out", "demos"),
]


def test_steps_of_a_run_with_screenshots_have_pictures_and_places(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mira(monkeypatch, *RUN) == 0
    assert mira(monkeypatch, "train", "examples", "demos", "-o", "steps.jsonl", "--resolution", "--think") == 0
    steps = read_examples(Path("steps.jsonl"))
    assert {type(step.target) for step in steps} == {StepTarget} and all(step.picture for step in steps)
    kinds = {type(step.target.action) for step in steps if isinstance(step.target, StepTarget)}
    assert kinds >= {ClickAt, Type}
    for step in steps:
        assert isinstance(step.target, StepTarget)
        assert "The screenshot resolution is " in step.messages[-1][1] and "<think>" in step.messages[-1][1]
        for place in step.target.places:
            shown = Image.open(io.BytesIO(step.picture or b"")).convert("L")
            assert shown.size == place.size
            left, top, right, bottom = map(round, place.box)
            low, high = shown.crop((left, top, right, bottom)).getextrema()
            assert low != high, "the element is drawn there"
            x, y = place.region.left + 1, place.region.top + 1
            near, far = (f'do(action="Click At", x={px}, y={py})' for px, py in (place.region.centre, (x, y)))
            scores = Rewarder(SslReward(), len).of_group(step.target, [near, far])
            assert scores[0].total == pytest.approx(1.2) and scores[0].total > scores[1].total > 1
    capsys.readouterr()
    assert mira(monkeypatch, "train", "examples", "demos", "-o", "words.jsonl", "--no-screenshots", "--json") == 0
    assert json.loads(capsys.readouterr().out)["examples"] >= len(steps)
    assert all(step.image is None for step in read_examples(Path("words.jsonl")))
    assert mira(monkeypatch, "train", "examples", "demos", "-o", "x", "--no-screenshots", "--resolution") == 2
    assert "--resolution states the size of screenshots" in capsys.readouterr().err
    assert mira(monkeypatch, "train", "examples", "demos", "-o", "x", "--ask", "goal", "--no-screenshots") == 2
    assert "--ask goal needs screenshots" in capsys.readouterr().err
