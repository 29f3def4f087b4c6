"""The path of docs/grounding.md from one's own screenshots: train, evaluate, use as a grounder. With a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from agent.run.grounders import form_of_model
from models.vision.grounding import GroundingPrompt
from tests.docs.documented import block_commands
from tests.mira_command import mira
from tests.tiny_models.vision_language import ARCHITECTURES
from training.grpo.predictions import Prediction, read_predictions

pytestmark = pytest.mark.slow

QUICK = [
    *("--set", "steps=1", "--set", "group=2", "--set", "answer_tokens=8", "--set", "micro_rows=4"),
    *("--set", "optimization.batch_rows=4", "--set", "compute.max_tokens=512", "--set", "compute.cpu=true"),
    *("--set", "compute.threads=1", "--set", "freeze_vision=false", "--set", "compute.lora=none"),
]


def _documented(folder: str) -> dict[str, list[str]]:
    """The commands of the page on the files of *folder*, by their two first words."""
    page = "docs/grounding.md:"
    commands = [list(each.words) for each in block_commands("mira") if each.place.startswith(page)]
    return {" ".join(words[1:3]): words for words in commands if any(folder in word for word in words)}


def _shots(folder: Path, count: int) -> str:
    """Examples in the documented form."""
    lines: list[str] = []
    for number in range(count):
        image = Image.new("RGB", (112, 84), "white")
        ImageDraw.Draw(image).rectangle((8 * number, 20, 8 * number + 30, 44), fill="red")
        image.save(folder / f"{number}.png")
        line = {
            "name": str(number),
            "image": f"{number}.png",
            "messages": [["user", "Where is the red button? Answer with x and y in pixels."]],
            "target": {"kind": "point", "box": [8 * number, 20, 8 * number + 30, 44], "size": [112, 84]},
            "facts": {"element": "icon" if number % 2 else "text", "template": f"page {number // 2}"},
        }
        lines.append(json.dumps(line))
    return "\n".join(lines)


def test_the_documented_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shots").mkdir()
    Path("shots/train.jsonl").write_text(_shots(Path("shots"), 4))
    Path("shots/test.jsonl").write_text(_shots(Path("shots"), 4))
    start = ARCHITECTURES["Qwen2.5-VL"](tmp_path / "start")
    documented = _documented("shots/")
    learn = [str(start) if word.startswith("PATH/TO") else word for word in documented["train grpo"]]
    assert mira(monkeypatch, *learn[1:], *QUICK) == 0
    capsys.readouterr()
    assert mira(monkeypatch, *documented["eval grounding"][1:], "--json") == 0
    score = json.loads(capsys.readouterr().out)
    assert score["examples"] == 4 and score["clusters"] == 2
    assert {group["name"] for group in score["groups"]} == {"text", "icon"}
    answers = read_predictions(Path("runs/own-test/predictions.jsonl"), Prediction)
    assert sorted(answers) == ["0", "1", "2", "3"] and all(each.answer or each.problem for each in answers.values())
    assert Path("runs/own-test/report.html").read_text().count("data:image/jpeg") == 4
    form = form_of_model("local:runs/own/model")
    assert form is not None
    assert form == GroundingPrompt(profile=form.profile, think=True, resolution=True), "the form that it was trained on"
