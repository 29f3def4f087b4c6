"""The commands of docs/howto/own-screenshots.md in their order, with a tiny random vision model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from agent.run.discover_traces import discover_traces
from tests.conftest import Site
from tests.docs.documented import block_commands
from tests.mira_command import mira
from tests.tiny_models.pictures import FAMILIES
from tests.training.data_sets.published import android_control, screenspot_v2
from training.grpo.results import read_held_out

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUICK = [
    *("steps=1", "group=2", "answer_tokens=16", "optimization.batch_rows=4", "micro_rows=4"),
    *("compute.lora=none", "compute.max_tokens=512", "compute.cpu=true", "compute.threads=1"),
]
PAGE = "docs/howto/own-screenshots.md:"


def labelled(folder: Path, numbers: range) -> None:
    """Red squares on white, with their boxes."""
    folder.mkdir()
    lines = ["picture,instruction,left,top,right,bottom,role,platform"]
    for number in numbers:
        image = Image.new("RGB", (84, 56), "white")
        ImageDraw.Draw(image).rectangle((number, 10, number + 20, 30), fill="red")
        image.save(folder / f"{number}.png")
        lines.append(f"{number}.png,the red square number {number},{number},10,{number + 20},30,icon,web")
    (folder / "labels.csv").write_text("\n".join(lines))


def test_from_a_folder_to_a_play(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, site: Site
) -> None:
    monkeypatch.chdir(tmp_path)
    labelled(Path("shots"), range(4))
    labelled(Path("held-out"), range(4, 6))
    screenspot_v2(Path("published-points"))
    android_control(Path("published-steps"))
    start = FAMILIES["qwen2.5-vl"](tmp_path / "start")
    site.pages["/"] = "<!doctype html><title>Shop</title><button>Check out</button>"
    Path("policy.json").write_text(json.dumps(['do(action="Click", element="the checkout button")', *["exit()"] * 3]))
    replaced = {
        "PATH/TO/Qwen2.5-VL-3B-Instruct": str(start),
        "https://shop.example": site.url("/"),
        "openai:gpt-4o": "scripted:policy.json",
        "PATH/TO/ScreenSpot-v2": "published-points",
        "PATH/TO/android_control": "published-steps",
        "vllm:http://127.0.0.1:8000/v1#Qwen/Qwen2.5-VL-7B-Instruct": "local:runs/own/trained/model",
    }
    commands = [list(command.words[1:]) for command in block_commands("mira") if command.place.startswith(PAGE)]
    names = [words[0] if words[0] == "run" else words[1] for words in commands]
    assert names == ["import", "import", "grpo", "show", "grounding", "run", "import", "import", "planning"]
    for words in commands:
        extra = [word for setting in QUICK for word in ("--set", setting)] if words[1] == "grpo" else []
        extra += ["--max-tokens", "16", "--out", "runs/planning"] if words[1] == "planning" else []
        code = mira(monkeypatch, *(replaced.get(word, word) for word in words), *extra)
        assert code == 0, (words, capsys.readouterr())
    assert [one.update for one in read_held_out(Path("runs/own/trained"))] == [0, 1]
    declared = json.loads(Path("runs/own/trained/model/mira.json").read_text())
    assert declared == {"vision_profile": "qwen2.5-vl", "grounding": "plain"} | declared
    assert (Path("runs/own/answers") / "report.html").is_file()
    answers = [json.loads(line) for line in Path("runs/planning/predictions.jsonl").read_text().splitlines()]
    assert len(answers) == 2 and all(answer["tokens"] > 0 for answer in answers)
    (file,) = discover_traces([Path("runs")])
    trace = file.read()
    asked = [event for event in trace.events if "local:runs/own/trained/model" in event.model_dump_json()]
    assert asked, "the trained model was asked where the checkout button is"
