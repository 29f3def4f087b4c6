"""`mira eval texts`: answers are scored by the metric of their subtask, for saved answers and for a model that sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.base import ChatReply, ChatRequest, Usage
from models.vision.profiles import profile_named
from tests.mira_command import mira
from tests.training.data_sets import published
from training.data_sets.examples import ImportOptions, import_data
from training.grpo.answering import answer_examples
from training.grpo.examples import Example, write_examples
from training.grpo.predictions import Prediction
from training.grpo.text_scores import score_texts


@pytest.fixture
def examples(tmp_path: Path) -> list[Example]:
    published.visualwebbench_texts(tmp_path / "published")
    options = ImportOptions(ask="text")
    return import_data("visualwebbench", tmp_path / "published", options, tmp_path / "images").examples


ANSWERS = {
    "action_prediction_0": "D",
    "action_prediction_1": "(B)",
    "element_ocr_0": "Free delivery in Rome",
    "element_ocr_1": "",
    "heading_ocr_0": "New phones",
    "heading_ocr_1": "Today",
    "web_caption_0": "Shop new phones. Free delivery.",
    "web_caption_1": "News of the week",
    "webqa_0": "<answer>free</answer>",
    "webqa_1": "Ada L.",
}


def test_saved_answers_by_subtask(
    examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_examples(tmp_path / "texts.jsonl", examples)
    lines = [Prediction(name=f"visualwebbench/{name}", answer=answer) for name, answer in ANSWERS.items()]
    saved = tmp_path / "saved.jsonl"
    saved.write_text("".join(f"{line.model_dump_json()}\n" for line in lines))
    words = ("eval", "texts", tmp_path / "texts.jsonl", "--predictions", saved)
    assert mira(monkeypatch, *words, "--json", "-o", tmp_path / "out") == 0
    scores = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "out" / "score.json").read_text()) == scores
    assert {(score["group"], score["metric"]): score["score"]["value"] for score in scores} == {
        ("action_prediction", "accuracy"): 0.5,
        ("element_ocr", "rouge_l"): pytest.approx(0.5),
        ("heading_ocr", "rouge_l"): pytest.approx(0.5),
        ("web_caption", "rouge_l"): pytest.approx((1 + 0.75) / 2),
        ("webqa", "word_f1"): pytest.approx((1 + 2 / 3) / 2),
    }
    assert mira(monkeypatch, *words) == 0
    assert "87.5%" in capsys.readouterr().out


class Reading:
    """A scripted model that answers with the letter A, and keeps what it is asked."""

    spec = "scripted"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        return ChatReply("A", Usage(tokens_out=1), self.spec, 0.0)

    async def aclose(self) -> None: ...


async def test_a_model_is_shown_the_picture_of_each_question(examples: list[Example]) -> None:
    model, kept = Reading(), list[Prediction]()
    asked = [example for example in examples if example.facts and example.facts.group == "action_prediction"]
    await answer_examples(model, profile_named("qwen2.5-vl"), asked, kept.append, max_tokens=9)
    assert [len(request.messages[-1].images) for request in model.requests] == [1, 1]
    assert all("red rectangle" in request.messages[-1].text for request in model.requests)
    (score,) = score_texts(asked, {each.name: each for each in kept})
    assert (score.score.value, score.tokens, score.examples) == (0.5, 1, 2)


def test_what_is_no_question_of_texts_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], examples: list[Example]
) -> None:
    line = {"name": "a", "messages": [["user", "?"]], "target": {"kind": "step", "action": {"kind": "back"}}}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    assert mira(monkeypatch, "eval", "texts", tmp_path / "a.jsonl", "--policy", "embedded") == 2
    assert "asks for no text" in (shown := capsys.readouterr().err) and shown.count("\n") == 1
    write_examples(tmp_path / "texts.jsonl", examples)
    assert mira(monkeypatch, "eval", "texts", tmp_path / "texts.jsonl", "--policy", "embedded") == 2
    assert "embedded reads text only" in capsys.readouterr().err
