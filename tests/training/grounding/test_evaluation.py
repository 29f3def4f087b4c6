"""`mira eval grounding` with saved predictions and with a model: accuracy, intervals, report, continuation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from models.base import ChatReply, ChatRequest, ModelBusy, ModelTruncated, Usage
from models.vision.coordinates import Size
from models.vision.grounding import THINK, GroundingPrompt, subject_of
from models.vision.profiles import PROFILES, profile_named
from tests.mira_command import mira
from training.grounding.answering import answer_all
from training.grounding.scores import score_all, summarise
from training.grpo.examples import Example, Facts, examples_digest, write_examples
from training.grpo.predictions import Asked, Prediction, StoredAnswers
from training.grpo.rewards import ChoiceTarget, PointTarget

SIZE = (200, 100)


def _example(folder: Path, number: int, *, element: str = "text", template: str = "t0", **facts: Any) -> Example:
    image = folder / f"{number}.png"
    Image.new("RGB", SIZE, "white").save(image)
    shared = {"subject": f"the button {number}", "element": element, "template": template, **facts}
    question = GroundingPrompt().where_is(f"the button {number}", Size(*SIZE))
    return Example(
        name=str(number),
        messages=(("user", question.text),),
        target=PointTarget(box=(40, 20, 100, 60), size=SIZE),
        image=image,
        facts=Facts.model_validate(shared),
    )


@pytest.fixture
def examples(tmp_path: Path) -> tuple[Example, ...]:
    """Eight examples of two templates and both elements."""
    return tuple(
        _example(tmp_path, n, element="icon" if n % 2 else "text", template=f"t{n // 4}", distractors=((0, 0, 9, 9),))
        for n in range(8)
    )


def _predictions(path: Path, points: dict[int, tuple[float, float] | None]) -> Path:
    lines = (
        Prediction(name=str(n), point=point, problem="" if point else "names no point") for n, point in points.items()
    )
    path.write_text("".join(f"{line.model_dump_json()}\n" for line in lines))
    return path


def test_saved_predictions_are_scored_drawn_and_grouped(
    examples: tuple[Example, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_examples(tmp_path / "test.jsonl", examples)
    points: dict[int, tuple[float, float] | None] = dict.fromkeys(range(4), (70, 40))
    points |= {4: (99, 59), 5: (101, 40), 6: None, 7: (190, 90)}  # corner of the box, outside it, no point, far away
    saved = _predictions(tmp_path / "answers.jsonl", points)
    out = tmp_path / "out"
    words = ("grounding", tmp_path / "test.jsonl", "--predictions", saved, "--out", out)
    assert mira(monkeypatch, "eval", *words, "--json") == 0
    score = json.loads(capsys.readouterr().out)
    assert score["accuracy"]["value"] == 5 / 8 and score["accuracy"]["low"] == pytest.approx(0.3057, abs=1e-3)
    assert score["clusters"] == 2 and score["clustered"]["low"] == 0.25 and score["clustered"]["high"] == 1.0
    assert score["without_point"] == 1
    assert score["tier"] == pytest.approx((4 * 1 + 0.25) / 8)
    assert score["median_offset"] == 0
    groups = {(each["by"], each["name"]): each["accuracy"]["value"] for each in score["groups"]}
    assert groups == {("element", "text"): 3 / 4, ("element", "icon"): 2 / 4}
    page = (out / "report.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 8 and page.count('class="wrong"') == 3
    assert page.index('class="wrong"') < page.index('class="right"')
    assert page.count('class="tier t0"') == page.count('class="other"') == 8 and page.count('class="way"') == 7
    plot = (out / "offsets.svg").read_text()
    assert plot.count('class="hit"') == 5 and plot.count('class="miss"') == 2
    assert "7 points, 1 of them drawn at the edge; 1 answers have none" in plot
    assert mira(monkeypatch, "eval", *words) == 0
    assert "62.5% (31-86)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fact", "names"), [("platform", ("mobile", "desktop", "web")), ("group", ("Dev", "CAD", "OS"))]
)
def test_the_columns_of_the_screenspot_tables(
    fact: str,
    names: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two texts and two icons of each platform or category; of each name, as many icons are right as its place."""
    kinds = [(name, element) for name in names for element in ("text", "text", "icon", "icon")]
    made = [_example(tmp_path, n, element=element, **{fact: name}) for n, (name, element) in enumerate(kinds)]
    write_examples(tmp_path / "test.jsonl", made)
    points: dict[int, tuple[float, float] | None] = {}
    for number, (name, element) in enumerate(kinds):
        right = element == "text" or number % 2 < names.index(name)
        points[number] = (70, 40) if right else (1, 1)
    words = ("grounding", tmp_path / "test.jsonl", "--predictions", _predictions(tmp_path / "saved.jsonl", points))
    assert mira(monkeypatch, "eval", *words, "--json") == 0
    groups = {
        each["name"]: (each["examples"], each["accuracy"]["value"])
        for each in json.loads(capsys.readouterr().out)["groups"]
        if each["by"] == f"{fact} × element"
    }
    shares = (0, 0.5, 1)
    assert groups == {f"{name}, text": (2, 1.0) for name in names} | {
        f"{name}, icon": (2, share) for name, share in zip(names, shares, strict=True)
    }
    assert mira(monkeypatch, "eval", *words) == 0
    assert f"{fact} × element: {names[0]}, icon" in " ".join(capsys.readouterr().out.split())


def _choice(folder: Path, number: int, right: int, group: str) -> Example:
    """Three marks of which the first two overlap."""
    boxes = ((0, 0, 80, 80), (10, 10, 90, 90), (150, 0, 190, 80))
    asked = _example(folder, number, group=group)
    target = ChoiceTarget(boxes=boxes, right=right, size=SIZE)
    return asked.model_copy(update={"target": target, "messages": (("user", f"Which mark, {number}?"),)})


async def test_choices_are_scored_by_their_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [
        _choice(tmp_path, n, right, "action_ground" if n > 2 else "element_ground")
        for n, right in enumerate((0, 1, 2, 0))
    ]
    model, kept = Scripted("A", "<think>B?</think>The answer is (A).", "c. The cart", "It is the red one"), list[Any]()
    await answer_all(model, GroundingPrompt(), examples, kept.append)
    assert [request.messages[0].text for request in model.asked] == [f"Which mark, {n}?" for n in range(4)]
    assert all(len(request.messages[0].images) == 1 for request in model.asked)
    write_examples(tmp_path / "test.jsonl", examples)
    saved = tmp_path / "saved.jsonl"
    saved.write_text("".join(f"{answer.model_dump_json()}\n" for answer in kept))
    words = ("grounding", tmp_path / "test.jsonl", "--predictions", saved, "--out", tmp_path / "out")
    assert mira(monkeypatch, "eval", *words, "--json") == 0
    score = json.loads(capsys.readouterr().out)
    assert score["accuracy"]["value"] == 1 / 4, "mark A is not B, though its centre is in B; c. is no letter there"
    groups = {each["name"]: each["accuracy"]["value"] for each in score["groups"] if each["by"] == "group"}
    assert groups == {"element_ground": pytest.approx(1 / 3), "action_ground": 0}
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count('class="other"') == 8 and page.count('class="way"') == 2
    assert page.count("no point: the answer names no mark") == 2


def _unknown(saved: Path, examples: Path) -> tuple[object, ...]:
    saved.write_text('{"name": "nobody", "point": [1, 2]}\n')
    return examples, "--predictions", saved


def _lacking(saved: Path, examples: Path) -> tuple[object, ...]:
    return examples, "--predictions", _predictions(saved, {0: (1, 2)})


def _neither(saved: Path, examples: Path) -> tuple[object, ...]:
    return (examples,)


def _text_only(saved: Path, examples: Path) -> tuple[object, ...]:
    return examples, "--policy", "embedded"


def _no_place(saved: Path, examples: Path) -> tuple[object, ...]:
    target = {"kind": "step", "action": {"kind": "back"}}
    line = {"name": "a", "messages": [["user", "?"]], "target": target}
    examples.write_text(json.dumps(line) + "\n")
    return examples, "--policy", "openai:any"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (_unknown, "'nobody', which is not an example"),
        (_lacking, "lack the example '1'"),
        (_neither, "--policy, or a file of --predictions"),
        (_text_only, "reads text only"),
        (_no_place, "asks for no position"),
    ],
)
def test_bad_input_is_one_line(  # noqa: PLR0917
    words: Callable[[Path, Path], tuple[object, ...]],
    says: str,
    examples: tuple[Example, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_examples(tmp_path / "test.jsonl", examples)
    assert mira(monkeypatch, "eval", "grounding", *words(tmp_path / "saved.jsonl", tmp_path / "test.jsonl")) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


class Scripted:
    """A scripted model: answers in turn, or raises."""

    spec = "scripted"

    def __init__(self, *answers: str | Exception, hidden: int = 0) -> None:
        self.answers = list(answers)
        self.hidden = hidden
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ChatReply(answer, Usage(tokens_out=7, tokens_thinking=self.hidden), self.spec, 0.0)

    async def aclose(self) -> None: ...


async def test_answers_are_in_the_models_own_coordinates_and_a_cut_one_is_wrong(examples: tuple[Example, ...]) -> None:
    cut = ModelTruncated("cut")
    cut.answered = True
    model, kept = Scripted('{"point_2d": [350, 400]}', "no idea", cut), list[Prediction]()
    await answer_all(model, GroundingPrompt(profile=profile_named("qwen3-vl")), examples[:3], kept.append)
    assert [each.point for each in kept] == [(70, 40), None, None]  # thousandths of 200 x 100
    assert [each.problem for each in kept] == ["", "names no point", "cut"]
    assert "from 0 to 1000" in model.asked[0].messages[0].text and len(model.asked[0].messages[0].images) == 1
    scored = score_all(examples[:3], {each.name: each for each in kept})
    assert summarise("scripted", scored).accuracy.value == 1 / 3


async def test_tokens_of_thoughts_are_separate(examples: tuple[Example, ...]) -> None:
    """Hidden ones as the server counts them, those in the answer by their share of its characters."""
    cut = ModelTruncated("cut")
    cut.answered, cut.usage = True, Usage(tokens_out=3, tokens_thinking=97)
    model = Scripted("70, 40", "<think>" + "x" * 8 + "</think> 70, 40", cut, hidden=10)
    kept = list[Prediction]()
    await answer_all(model, GroundingPrompt(think=True), examples[:3], kept.append)
    share = round(7 * 8 / len("<think></think> 70, 40" + "x" * 8))
    assert share > 0 and [each.tokens for each in kept] == [17, 17, 100]
    assert [each.thought_tokens for each in kept] == [10, 10 + share, 100]
    scored = score_all(examples[:3], {each.name: each for each in kept})
    score = summarise("scripted", scored)
    assert score.thought_tokens.value == pytest.approx((120 + share) / 3) and score.tokens == pytest.approx(134 / 3)
    old = [each.model_copy(update={"thought_tokens": None}) for each in kept]
    unknown = summarise("scripted", score_all(examples[:3], {each.name: each for each in old}))
    assert unknown.thought_tokens.value is None


async def test_a_question_that_asks_for_a_thought_leaves_room_for_it(examples: tuple[Example, ...]) -> None:
    """Symptom: a choice that asks for a thought had the tokens of a bare letter, and models that think by themselves
    could not be given more: their answers were cut, and wrong."""
    (role, text), plain = examples[0].messages[0], examples[1]
    choice = ChoiceTarget(boxes=((0, 0, 9, 9), (20, 0, 29, 9)), right=0, size=SIZE)
    asked = examples[0].model_copy(update={"target": choice, "messages": ((role, f"{text}{THINK}"),)})
    model = Scripted(*["A"] * 6)
    for form, limit in ((GroundingPrompt(), None), (GroundingPrompt(think=True), None), (GroundingPrompt(), 2_000)):
        await answer_all(model, form, [asked, plain], list[Prediction]().append, max_tokens=limit)
    assert [request.max_tokens for request in model.asked] == [640, 128, 640, 640, 2_000, 2_000]


def _asked(policy: str, form: GroundingPrompt, examples: tuple[Example, ...]) -> Asked:
    return Asked(policy=policy, profile=form.profile.name, think=form.think, examples=examples_digest(examples))


async def test_an_interrupted_evaluation_asks_for_the_rest_only(examples: tuple[Example, ...], tmp_path: Path) -> None:
    out, form = tmp_path / "out", GroundingPrompt()
    down = ModelBusy("down")
    with StoredAnswers.open(out, _asked("scripted", form, examples), Prediction) as stored, pytest.raises(ModelBusy):
        await answer_all(Scripted("70, 40", "71, 41", down), form, examples, stored.add)
    with (out / "predictions.jsonl").open("a") as file:
        file.write('{"name": "2", "poi')  # killed while it wrote
    again = StoredAnswers.open(out, _asked("scripted", form, examples), Prediction)
    assert {name: each.point for name, each in again.answers.items()} == {"0": (70, 40), "1": (71, 41)}
    with again:
        await answer_all(Scripted("1, 1"), form, examples[2:3], again.add)
    assert len(StoredAnswers.open(out, _asked("scripted", form, examples), Prediction).answers) == 3
    for other in (("another", form, examples), ("scripted", GroundingPrompt(think=True), examples)):
        with pytest.raises(Exception, match=r"an evaluation with (another policy|other settings of think): restore"):
            StoredAnswers.open(out, _asked(*other), Prediction)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_questions_are_read_back(profile: Any) -> None:
    for think in (False, True):
        for resolution in (False, True):
            form = GroundingPrompt(think, resolution, profile=profile)
            element = form.where_is('the "Where is it?" button', Size(9, 8)).text
            assert subject_of(element) == ("where_is", 'the "Where is it?" button')
            goal = form.where_to_click("Buy a lamp. Then pay", Size(9, 8)).text
            assert subject_of(goal) == ("where_to_click", "Buy a lamp. Then pay")
    assert subject_of("Point at it.") is None


def test_the_report_shows_page_text_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = _example(tmp_path, 0, subject="<script>alert(1)</script>")
    write_examples(tmp_path / "test.jsonl", [hostile])
    saved = tmp_path / "saved.jsonl"
    saved.write_text(
        Prediction(name="0", answer="</p><img src=x onerror=alert(1)>", problem="names no point").model_dump_json()
    )
    words = ["eval", "grounding", tmp_path / "test.jsonl", "--predictions", saved, "-o", tmp_path / "out"]
    assert mira(monkeypatch, *words) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page
