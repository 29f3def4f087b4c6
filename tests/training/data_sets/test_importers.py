"""Each published data set in miniature becomes the examples that it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pyarrow import parquet

from envs.core.action_languages import PROGRAM
from envs.core.actions import Click, ClickAt, Scroll, Type
from envs.core.errors import BadInput
from tests.training.data_sets import published
from tests.training.data_sets.published import BUILDERS
from training.data_sets import items
from training.data_sets.examples import ImportOptions, import_data
from training.data_sets.items import Exclusion
from training.data_sets.prompts import ACTIONS
from training.data_sets.registry import DATA_SETS, NAMES
from training.grpo.examples import Example, check_images, read_examples, write_examples
from training.grpo.rewards import (
    ChoiceTarget,
    OptionTarget,
    PointTarget,
    StepTarget,
    TextTarget,
    is_right,
    read_completion,
)


def imported(name: str, folder: Path, **options: Any) -> tuple[Example, ...]:
    """Through the file, as training reads it."""
    source, out = folder / "published", folder / "out" / "train.jsonl"
    if not source.exists():
        source.mkdir()
        BUILDERS[name](source)
    result = import_data(name, source, ImportOptions(**options), folder / "out" / "train-images")
    write_examples(out, result.examples)
    examples = read_examples(out)
    check_images(examples)
    return examples


def steps(examples: tuple[Example, ...]) -> list[StepTarget]:
    targets = [example.target for example in examples]
    assert all(isinstance(target, StepTarget) for target in targets)
    return [target for target in targets if isinstance(target, StepTarget)]


def points(examples: tuple[Example, ...]) -> list[PointTarget]:
    targets = [example.target for example in examples]
    assert all(isinstance(target, PointTarget) for target in targets)
    return [target for target in targets if isinstance(target, PointTarget)]


def facts(example: Example) -> tuple[str, str, str | None]:
    assert example.facts is not None
    return example.facts.element, example.facts.platform, example.facts.split


def test_every_importer_has_a_miniature() -> None:
    assert tuple(BUILDERS) == NAMES == DATA_SETS.names


@pytest.mark.parametrize("name", NAMES)
def test_two_rows_are_two_examples_with_a_right_answer(tmp_path: Path, name: str) -> None:
    examples = imported(name, tmp_path)
    assert len(examples) == 2
    for example in examples:
        assert example.facts is not None and example.facts.source == name and example.facts.subject
        target = example.target
        if isinstance(target, StepTarget):
            answer = PROGRAM.show(target.action)
        elif isinstance(target, ChoiceTarget):
            answer = target.letter
        else:
            assert isinstance(target, PointTarget)
            answer = "{}, {}".format(*target.region.centre)
        assert is_right(target, read_completion(answer))
        assert not is_right(target, read_completion("nothing"))


def test_screenspot(tmp_path: Path) -> None:
    examples = imported("screenspot", tmp_path)
    assert [facts(one) for one in examples] == [("text", "mobile", "test"), ("icon", "desktop", "test")]
    assert [one.box for one in points(examples)] == [(20, 10, 60, 30)] * 2
    text = examples[0].messages[0][1]
    assert text == "Where to click next: open the mobile settings Answer with x and y in pixels."
    (desktop,) = imported("screenspot", tmp_path, split="desktop")
    assert facts(desktop)[1] == "desktop"


def test_screenspot_as_a_table(tmp_path: Path) -> None:
    published.screenspot_table(tmp_path / "published")
    examples = imported("screenspot", tmp_path, ask="element")
    assert [one.box for one in points(examples)] == [(20, 10, 60, 30)] * 2
    assert [facts(one)[1] for one in examples] == ["mobile", "web"]
    assert examples[0].messages[0][1].startswith("Where is send?")
    assert examples[0].image == examples[1].image, "equal pictures are stored once"


def test_screenspot_v2_has_widths_and_pro_has_edges(tmp_path: Path) -> None:
    (tmp_path / "v2").mkdir()
    (tmp_path / "pro").mkdir()
    second = imported("screenspot-v2", tmp_path / "v2")
    professional = imported("screenspot-pro", tmp_path / "pro", split="Dev")
    assert [one.box for one in points((*second, *professional))] == [(20, 10, 60, 30)] * 4
    assert [facts(one)[:2] for one in professional] == [("text", "macos"), ("icon", "macos")]
    assert [one.facts and one.facts.group for one in professional] == ["Dev", "Dev"]


def test_android_control(tmp_path: Path) -> None:
    examples = imported("android-control", tmp_path, low=True)
    first, second = steps(examples)
    assert first.action == ClickAt(x=20, y=30)
    assert first.places[0].box == (10, 20, 50, 60), "the smallest node that is visible"
    assert second.action == Type(ref=items.FOCUSED, text="Ann")
    assert "Task: Set an alarm\nThis step: Type the name\nDone, 1: Open the clock\n" in examples[1].messages[0][1]
    assert examples[0].picture == published.png((100, 200)), "the screenshot before the action"
    assert facts(examples[0]) == ("", "android", "test")
    assert "This step" not in imported("android-control", tmp_path)[1].messages[0][1]
    with pytest.raises(BadInput, match=r"no row .* 1 rows, episodes or files of another split"):
        imported("android-control", tmp_path, split="train")


def test_gui_odyssey(tmp_path: Path) -> None:
    examples = imported("gui-odyssey", tmp_path, split="random_split/test")
    click, scroll = steps(examples)
    assert click.action == ClickAt(x=50, y=50)
    assert click.places[0].box == (40, 40, 60, 60)
    assert scroll.action == Scroll(direction="down"), "the finger moves up"
    assert facts(examples[0]) == ("", "android, Pixel Fold", "test")
    with pytest.raises(BadInput, match="has random_split/train, random_split/test"):
        imported("gui-odyssey", tmp_path, split="test")


def test_aitz(tmp_path: Path) -> None:
    examples = imported("aitz", tmp_path)
    click, typed = steps(examples)
    assert click.action == ClickAt(x=25, y=40)
    assert click.places[0].box == (10, 20, 40, 60)
    assert typed.action == Type(ref=items.FOCUSED, text="hotels")
    assert "Done, 1: click on the icon\n" in examples[1].messages[0][1]


def test_omniact(tmp_path: Path) -> None:
    examples = imported("omniact", tmp_path)
    click, typed = steps(examples)
    assert click.action == ClickAt(x=40, y=20)
    assert click.places[0].box == (20, 10, 60, 30)
    assert typed.action == Type(ref=items.FOCUSED, text="lamp")
    assert examples[1].messages[0][1].startswith("Task: Buy the lamp\nDone, 1: do(action=")
    assert facts(examples[0]) == ("", "web", "test")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rightClick(40,20)", 'do(action="Right Click At", x=40, y=20)'),
        ("doubleClick(40, 20)", 'do(action="Double Click At", x=40, y=20)'),
        ("scroll(-30)", 'do(action="Scroll Down")'),
        ('press("enter")', 'do(action="Press Enter")'),
        ('hotkey("ctrl", "s")', 'do(action="Press Key", argument="Control+s")'),
        ("moveTo(40,20)", Exclusion.POINTER),
        ("sleep(3)", Exclusion.NO_ACTION),
    ],
)
def test_a_line_of_omniact(tmp_path: Path, line: str, expected: str) -> None:
    source = tmp_path / "published"
    source.mkdir()
    published.omniact(source)
    script = source / "data/web/shop/task_1.txt"
    script.write_text(f"Task: x\nOutput Script:\npyautogui.{line}\npyautogui.write('ok')\n")
    result = import_data("omniact", source, ImportOptions(), tmp_path)
    found = result.examples[0].target
    assert isinstance(found, StepTarget)
    if isinstance(expected, Exclusion):
        assert result.left_out == {expected: 1}
    else:
        assert PROGRAM.show(found.action) == expected


def test_scripts_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "published"
    source.mkdir()
    published.omniact(source)
    script = (
        "Task: x\nOutput Script:\npyautogui.write(open('ran', 'w'))\npyautogui.write('it's)\npyautogui.write('a')\n"
    )
    (source / "data/web/shop/task_1.txt").write_text(script)
    result = import_data("omniact", source, ImportOptions(), tmp_path)
    assert len(result.examples) == 1 and result.left_out == {Exclusion.NO_ACTION: 2}
    assert not Path("ran").exists()


def test_mind2web(tmp_path: Path) -> None:
    examples = imported("mind2web", tmp_path, split="test_task")
    click, typed = steps(examples)
    assert click.action == ClickAt(x=40.5, y=20)
    assert click.places[0].box == (20.5, 10, 60.5, 30), "the candidate that has a box"
    assert typed.action == Type(ref=items.FOCUSED, text="Rome")
    assert "Done, 1: [button] Search -> CLICK" in examples[1].messages[0][1]
    for example in examples:
        assert example.facts is not None and example.facts.group == "test_task"
        assert example.facts.elements == ((20.5, 10, 60.5, 30),), "the element of every step, the one that types too"
        assert "# Element: X, Y   the place of the field" in example.messages[0][1]
    goals = imported("mind2web", tmp_path, ask="goal", low=True)
    assert [one.box for one in points(goals)] == [(20.5, 10, 60.5, 30)] * 2, "also where to type"
    assert "Find a flat in Rome; [textbox]" in goals[1].messages[0][1]


def test_gui_r1_3k(tmp_path: Path) -> None:
    click, scroll = steps(imported("gui-r1-3k", tmp_path, split="train"))
    assert click.action == ClickAt(x=40, y=30)
    assert click.places[0].box == pytest.approx((20, 20, 60, 40))
    assert scroll.action == Scroll(direction="down")


def test_visualwebbench(tmp_path: Path) -> None:
    """Files are in the order of their names: action_ground, element_ground."""
    action, element = imported("visualwebbench", tmp_path)
    assert isinstance(action.target, ChoiceTarget) and isinstance(element.target, ChoiceTarget)
    assert (action.target.letter, element.target.letter) == ("H", "C")
    assert tuple(element.target.region) == pytest.approx((40, 10, 56, 30)), "shares of 200 x 100 pixels"
    assert tuple(action.target.region) == (140, 10, 156, 30), "pixels"
    assert len(element.target.boxes) == 8 and element.picture == published.png((200, 100), "red"), "with the marks"
    assert [one.facts and one.facts.group for one in (action, element)] == ["action_ground", "element_ground"]
    assert element.messages[0][1].startswith(
        "Elements on the screenshot are marked with letters. Which of them is this: the cart of element_ground\nAnswer"
    )
    assert "to be clicked for this task: the cart of action_ground" in action.messages[0][1]
    (goal,) = imported("visualwebbench", tmp_path, ask="goal", split="action_ground")
    assert points((goal,))[0].box == (140, 10, 156, 30) and goal.picture == published.png((200, 100))


def test_texts_of_visualwebbench(tmp_path: Path) -> None:
    published.visualwebbench(tmp_path / "published")
    published.visualwebbench_texts(tmp_path / "published")
    examples = imported("visualwebbench", tmp_path, ask="text")
    targets = {example.name.partition("/")[2]: example.target for example in examples}
    assert targets == {
        "action_prediction_0": OptionTarget(options=tuple("stuvwxyz"), right=3),
        "action_prediction_1": OptionTarget(options=("As", "Bs", "Cs", "Ds"), right=0),
        "element_ocr_0": TextTarget(answers=("Free delivery in Rome",), metric="rouge_l"),
        "element_ocr_1": TextTarget(answers=("All rights reserved",), metric="rouge_l"),
        "heading_ocr_0": TextTarget(answers=("New phones",), metric="rouge_l"),
        "heading_ocr_1": TextTarget(answers=("News",), metric="rouge_l"),
        "web_caption_0": TextTarget(answers=("Shop new phones. Free delivery.",), metric="rouge_l"),
        "web_caption_1": TextTarget(answers=("News of the day",), metric="rouge_l"),
        "webqa_0": TextTarget(answers=("nothing", "free"), metric="word_f1"),
        "webqa_1": TextTarget(answers=("Ada",), metric="word_f1"),
    }
    asked = {example.name.partition("/")[2]: example.messages[0][1] for example in examples}
    assert asked["webqa_1"] == "Who wrote it?\nAnswer in as few words as possible."
    rectangle = "The screenshot has a red rectangle, from 100, 100 to 200, 200 in thousandths of its width and height. "
    assert asked["action_prediction_1"].startswith(f"{rectangle}Which of these")
    assert "\nA. As\nB. Bs\nC. Cs\nD. Ds\nAnswer with one uppercase letter" in asked["action_prediction_1"]
    assert len(imported("visualwebbench", tmp_path, ask="text", split="webqa")) == 2
    result = import_data("visualwebbench", tmp_path / "published", ImportOptions(), tmp_path / "images")
    assert len(result.examples) == 2 and result.left_out == {Exclusion.OTHER_QUESTION: 10}, "letters of marks only"


def test_a_text_of_visualwebbench_without_words_is_named(tmp_path: Path) -> None:
    published.visualwebbench_texts(tmp_path)
    path = tmp_path / "heading_ocr" / "test-00000-of-00001.parquet"
    first, second = parquet.read_table(path).to_pylist()
    published.write_parquet(path, [first, second | {"answer": " . "}])
    with pytest.raises(BadInput, match=r"row 2: .*a correct answer has no words"):
        import_data("visualwebbench", path, ImportOptions(ask="text"), tmp_path)


def test_a_row_of_visualwebbench_without_its_answer_is_named(tmp_path: Path) -> None:
    published.visualwebbench(tmp_path)
    path = tmp_path / "element_ground" / "test-00000-of-00001.parquet"
    (row,) = parquet.read_table(path).to_pylist()
    published.write_parquet(path, [row | {"answer": 8}])
    with pytest.raises(BadInput, match=r"row 1: 'answer' must be the index of one of 8 'options', from 0, not 8"):
        import_data("visualwebbench", path, ImportOptions(), tmp_path)


def test_steps_without_a_point_are_left_out_of_goals(tmp_path: Path) -> None:
    published.gui_r1_3k(tmp_path / "published")
    result = import_data("gui-r1-3k", tmp_path / "published", ImportOptions(ask="goal"), tmp_path)
    assert len(result.examples) == 1 and result.left_out == {Exclusion.NO_POINT: 1}


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    examples = imported("folder", tmp_path)
    assert [one.box for one in points(examples)] == [(20, 10, 60, 30), (80, 10, 120, 30)]
    assert [facts(one) for one in examples] == [("text", "web", None), ("", "", None)]
    assert examples[0].messages[0][1] == "Where is the checkout button? Answer with x and y in pixels."
    lines = '{"picture": "shots/cart.png", "instruction": "the cart", "box": [80, 10, 120, 30]}\n'
    (tmp_path / "published" / "more.jsonl").write_text(lines)
    other = import_data("folder", tmp_path / "published" / "more.jsonl", ImportOptions(), tmp_path)
    assert other.examples[0].target == examples[1].target


@pytest.mark.parametrize(
    ("orientation", "stored_by"),
    [
        (1, None),
        (3, Image.Transpose.ROTATE_180),
        (6, Image.Transpose.ROTATE_90),
        (8, Image.Transpose.ROTATE_270),
    ],
)
def test_a_picture_that_its_exif_data_turn_is_upright(
    tmp_path: Path, orientation: int, stored_by: Image.Transpose | None
) -> None:
    """Symptom: boxes of a photo of a phone were read in the frame of its sensor, and training saw it turned, play did
    not."""
    shown = Image.new("RGB", (40, 120), "white")
    shown.paste("red", (8, 80, 24, 96))
    exif = Image.Exif()
    exif[0x0112] = orientation
    folder = tmp_path / "published"
    folder.mkdir()
    (shown if stored_by is None else shown.transpose(stored_by)).save(folder / "a.jpg", exif=exif, quality=100)
    (folder / "labels.csv").write_text("picture,instruction,left,top,right,bottom\na.jpg,the button,8,80,24,96\n")
    (example,) = imported("folder", tmp_path)
    (point,) = points((example,))
    assert point.size == (40, 120)
    with Image.open(example.image or "") as stored:
        red, green, _ = stored.convert("RGB").getpixel((16, 88))  # pyright: ignore[reportGeneralTypeIssues]
        assert red > 200 and green < 50 and stored.getexif().get(0x0112, 1) == 1


def test_what_a_prompt_offers_can_be_answered(tmp_path: Path) -> None:
    prompt = imported("aitz", tmp_path, think=True, resolution=True, coordinates="thousand")[0].messages[0][1]
    assert "The screenshot resolution is 100x200.\n" in prompt and "x and y from 0 to 1000:\n" in prompt
    resized = imported("aitz", tmp_path, resolution=True, coordinates="resized")[0].messages[0][1]
    assert "The screenshot resolution is 112x196.\n" in resized, "as Qwen's processor resizes it"
    assert prompt.endswith("between <answer> and </answer>.")
    for written, _ in ACTIONS:
        assert written in prompt
        action = PROGRAM.parse(written.replace("=X", "=1").replace("=Y", "=2")).action
        assert not isinstance(action, Click)


def test_text_of_a_data_set_cannot_start_a_line_of_the_prompt(tmp_path: Path) -> None:
    published.own_folder(tmp_path / "published")
    row = '{"picture": "shots/cart.png", "instruction": "x\\nAnswer 1, 1", "box": [20, 10, 60, 30]}'
    (tmp_path / "published" / "odd.jsonl").write_text(row)
    (example,) = import_data("folder", tmp_path / "published" / "odd.jsonl", ImportOptions(), tmp_path).examples
    assert "\n" not in example.messages[0][1]


def test_a_point_without_an_element_gets_the_tolerance_of_the_benchmarks() -> None:
    assert items.around(50, 100, (100, 200)) == pytest.approx((36, 72, 64, 128))
    assert items.smallest_around(5, 5, [(0, 0, 9, 9), (4, 4, 6, 6), (5, 5, 5.5, 5.5), (7, 7, 8, 8)]) == (4, 4, 6, 6)


@pytest.mark.parametrize(
    ("start", "end", "direction"),
    [((50, 80), (50, 20), "down"), ((50, 20), (50, 80), "up"), ((80, 5), (20, 0), "right"), ((20, 5), (80, 0), "left")],
)
def test_the_view_moves_against_the_finger(
    start: tuple[float, float], end: tuple[float, float], direction: str
) -> None:
    assert items.scroll_by_finger(start, end).direction == direction
