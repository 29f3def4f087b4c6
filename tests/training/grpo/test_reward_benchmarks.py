"""The benchmarks of GRPO's rewards: their arms' settings, their tables, and a run of two updates of every arm."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import grpo_gradients, grpo_grounding, grpo_puzzles, grpo_tagged, grpo_thoughts
from benchmarks.grpo_arms import ArmRun, MeasuredExamples, Results, Sets, Setting, play, read_results, table
from benchmarks.toy_models.puzzles import fresh_model, puzzle_tokenizer, reference_rows
from benchmarks.toy_models.vision import character_tokenizer, vision_model
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from judges.statistics import proportion
from models.vision.coordinates import Size
from models.vision.grounding import GroundingPrompt
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.grpo.evaluation import Evaluation
from training.grpo.examples import Example, read_examples, write_examples
from training.grpo.results import HeldOutEvaluation
from training.grpo.rewards import PointTarget
from training.grpo.rewards.geometry import Point
from training.grpo.rewards.lpo import LpoReward, density, window_entropies
from training.grpo.settings import GrpoSettings, parse_settings

Arms = Mapping[str, Mapping[str, Any]]
BENCHMARKS: dict[str, tuple[Mapping[str, Any], Arms]] = {
    "puzzles": (grpo_puzzles.BASE, grpo_puzzles.ARMS),
    "thoughts": (grpo_thoughts.BASE, grpo_thoughts.ARMS),
    "grounding": (grpo_grounding.BASE, grpo_grounding.ARMS),
    "ladder": (grpo_tagged.BASE, grpo_tagged.LADDER),
    "rivals": (grpo_tagged.BASE, grpo_tagged.RIVALS),
}
EVERY_ARM = [(name, arm) for name, (_, arms) in BENCHMARKS.items() for arm in arms]
WIDE, HIGH = grpo_grounding.AREA


def settings_of(benchmark: str, arm: str) -> GrpoSettings:
    base, arms = BENCHMARKS[benchmark]
    return parse_settings(merged(base, arms[arm]), arm)


@pytest.mark.parametrize(("benchmark", "arm"), EVERY_ARM)
def test_the_settings_of_every_arm_are_valid(benchmark: str, arm: str) -> None:
    settings = settings_of(benchmark, arm)
    assert settings.optimization.learning_rate == 1e-4, "a paper's rate is for models of billions of parameters"
    assert settings.compute.lora is None
    assert settings.compute.cpu


@pytest.mark.parametrize(("benchmark", "arm"), [("grounding", "lpo"), ("rivals", "lpo"), ("rivals", "no-distance")])
def test_the_windows_of_lpo_are_the_patches_of_the_encoder(benchmark: str, arm: str, tmp_path: Path) -> None:
    reward = settings_of(benchmark, arm).reward
    assert isinstance(reward, LpoReward)
    assert reward.edge is None, "windows are in the pixels of the image itself"
    config = json.loads((vision_model(tmp_path, width=32, layers=1) / "config.json").read_text())["vision_config"]
    grid = config["image_size"] // config["patch_size"]
    assert window_entropies(np.zeros((HIGH, WIDE)), reward.window).shape == (grid, grid)


def test_a_point_in_a_plain_square_has_information_density() -> None:
    """With windows of a fiftieth of the picture, the centre of a square of 20 pixels has none."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (WIDE, HIGH), "white")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((20, 80, 40, 100), fill="red", outline="black")
    draw.text((5, 130), "Lorem ipsum dolor", fill="black")
    file = io.BytesIO()
    picture.save(file, "PNG")
    reward = settings_of("grounding", "lpo").reward
    assert isinstance(reward, LpoReward)
    assert density(Point(30, 90), file.getvalue(), reward.window, reward.bins, reward.edge) > 0.3
    assert density(Point(30, 90), file.getvalue(), reward.window, reward.bins) == 0, "scaled to 1,000 pixels"


@pytest.mark.parametrize("arm", [arm for arm in grpo_tagged.LADDER if arm != "distance-9"])
def test_a_row_of_the_ladder_is_that_of_the_recipe(arm: str) -> None:
    own, row = settings_of("ladder", arm), parse_settings({"recipe": f"guirlvg/{arm}"}, "row")
    size = {"answer_tokens", "micro_rows", "steps", "held_out_every", "optimization", "compute"}
    assert set(grpo_tagged.BASE) == size, "only the size of a run differs from the row"
    assert own.model_dump(exclude=size) == row.model_dump(exclude=size)


def test_rivals_of_lpo_are_rewarded_for_type_and_format() -> None:
    rivals = {arm: settings_of("rivals", arm).reward for arm in ("ui-r1", "gui-r1", "infigui-r1")}
    positions = {reward.reward for reward in rivals.values() if isinstance(reward, LpoReward)}
    assert positions == {"box", "radius", "overlap"}
    assert {reward.max_reward for reward in rivals.values()} == {3.0}


def evaluation(solved: Sequence[str], proximity: float = 0.5) -> Evaluation:
    return Evaluation(
        examples=4,
        correct=proportion(len(solved), 4),
        proximity=proximity,
        near_misses=0.0,
        answer_tokens=3.0,
        thought_tokens=0.0,
        solved=tuple(solved),
    )


def arm_run(arm: str, solved: Mapping[int, Sequence[str]], seed: int = 0) -> ArmRun:
    held_out = [HeldOutEvaluation(update=update, measured=evaluation(names)) for update, names in solved.items()]
    return ArmRun(arm=arm, seed=seed, held_out=tuple(held_out))


def solved_of(text: str) -> dict[str, str]:
    """The column `solved` of a table by row."""
    cells = [row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith("| ")]
    return {row[0]: row[2] for row in cells[2:]}


FIRST = {0: "", 25: "abcd", 50: "abcd", 75: "abcd", 100: "abcd", 125: "", 150: "a", 175: "ab", 200: "abc"}
EXAMPLES = MeasuredExamples(names=tuple("abcd"), digest="0")


def test_an_arm_has_the_mean_of_its_late_measurements(tmp_path: Path) -> None:
    runs = (arm_run("binary", FIRST), arm_run("ssl", {0: "", 50: "", 100: "ab", 150: "abcd"}))
    assert [one.update for one in runs[0].late] == [125, 150, 175, 200]
    assert [one.update for one in runs[1].late] == [100, 150]
    table(Results(examples=EXAMPLES, runs=runs), tmp_path / "made")
    text = (tmp_path / "made.md").read_text()
    assert "means of the measurements after updates 125, 150, 175, 200 or 100, 150." in text
    assert solved_of(text) == {"start": "0.0%", "binary": "37.5%", "ssl": "75.0%"}


def test_a_table_is_made_again_from_its_own_file(tmp_path: Path) -> None:
    results = Results(examples=EXAMPLES, runs=(arm_run("ssl", FIRST), arm_run("binary", FIRST)))
    table(results, tmp_path / "made")
    again = read_results(tmp_path / "none", (), tmp_path / "made.json", order=("ssl", "binary"))
    assert again == results


def test_starts_that_are_asked_other_questions_have_rows_of_their_own(tmp_path: Path) -> None:
    runs = (arm_run("box", {0: "ab", 200: "a"}), arm_run("point", {0: "abc", 200: "a"}))
    results = Results(examples=EXAMPLES, runs=runs)
    table(results, tmp_path / "made", baseline="box", starts={"point": "start, point"})
    rows = solved_of((tmp_path / "made.md").read_text())
    assert (rows["start"], rows["start, point"]) == ("50.0%", "75.0%")


def test_tasks_have_the_start_of_each_question() -> None:
    names = ("run/click-tab-0-a1/0", "run/click-tab-1-a1/0")
    box = arm_run("box", {0: names[:1], 200: names})
    point = arm_run("point", {0: (), 150: (), 200: names})
    results = Results(examples=MeasuredExamples(names=names, digest=""), runs=(box, point))
    rows = grpo_grounding.task_table(results, {"point": "start, point"}).splitlines()
    assert rows[0] == "| task | examples | start | box | start, point | point |"
    assert rows[2] == "| click-tab | 2 | 50.0% | 100.0% | 0.0% | 50.0% |"


def test_starts_of_the_ladder_are_named_by_their_questions() -> None:
    labels = {arm: grpo_tagged.label_of_start(arm, "ladder") for arm in ("trivial", "iou", "in-box")}
    assert labels == {"trivial": "start, json box", "iou": "start, box", "in-box": "start, point"}
    assert grpo_tagged.label_of_start("lpo", "rivals") == "start, plain point"


def test_runs_on_other_examples_are_not_added(tmp_path: Path) -> None:
    table(Results(examples=EXAMPLES, runs=(arm_run("binary", FIRST),)), tmp_path / "made")
    run = tmp_path / "runs" / "ssl" / "seed-0"
    (run / "model").mkdir(parents=True)
    (run / "held_out.jsonl").write_text(arm_run("ssl", FIRST).held_out[0].model_dump_json() + "\n")
    measured = point_examples(tmp_path, 2)
    assert [one.arm for one in read_results(tmp_path / "runs", measured).runs] == ["ssl"]
    with pytest.raises(BadInput, match="was not measured on the examples of the runs in"):
        read_results(tmp_path / "runs", measured, tmp_path / "made.json")


def test_a_table_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has ended: `play` plays them"):
        read_results(tmp_path, ())


def point_examples(folder: Path, count: int, first: int = 0) -> tuple[Example, ...]:
    """Squares on white pictures of the size of a task."""
    from PIL import Image, ImageDraw

    rng = random.Random(first)
    examples: list[Example] = []
    for number in range(first, first + count):
        left, top = rng.randrange(WIDE - 40), rng.randrange(HIGH - 40)
        box = (float(left), float(top), left + 30.0, top + 20.0)
        picture = Image.new("RGB", (WIDE, HIGH), "white")
        ImageDraw.Draw(picture).rectangle(box, fill=(number, 90, 200))
        image = folder / f"{number}.png"
        picture.save(image)
        question = GroundingPrompt().where_is(f'button "{number}"', Size(WIDE, HIGH)).text
        target = PointTarget(box=box, size=(WIDE, HIGH))
        name = f"run/click-tab-{number}-a1/0"
        examples.append(Example(name=name, messages=(("user", question),), image=image, target=target))
    return tuple(examples)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Sets:
    folder = tmp_path_factory.mktemp("points")
    return Sets(point_examples(folder, 8), point_examples(folder, 2, first=100))


def play_briefly(start: Path, sets: Sets, benchmark: str, arm: str, out: Path) -> None:
    """Two updates of one group each, as the benchmark plays an arm."""
    base, arms = BENCHMARKS[benchmark]
    group = settings_of(benchmark, arm).group
    small = {"steps": 2, "held_out_every": 0, "answer_tokens": 36, "optimization": {"batch_rows": group}}
    brief = {name: merged(merged(changes, small), {"group": group}) for name, changes in arms.items()}
    play(Setting(start, sets, base, brief, out), [arm], [0])
    results = read_results(out, sets.measured)
    assert [one.update for one in results.runs[0].held_out] == [0, 2]
    table(results, out / "table")
    assert f"| {arm} | 1 |" in (out / "table.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("arm", grpo_puzzles.ARMS)
def test_an_arm_of_puzzles_trains(arm: str, tmp_path: Path) -> None:
    _, learned, measured = grpo_puzzles.sets_of("maze")
    start = fresh_model(tmp_path / "start", width=32, layers=1)
    play_briefly(start, Sets(learned[:8], measured[:2]), "puzzles", arm, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("arm", grpo_thoughts.ARMS)
def test_an_arm_of_thoughts_trains(arm: str, tmp_path: Path) -> None:
    tokenizer = puzzle_tokenizer("<think>", "</think>")
    start = fresh_model(tmp_path / "start", width=32, layers=1, tokenizer=tokenizer)
    learned = grpo_thoughts.puzzles(8, 1)
    sets = Sets(learned, grpo_thoughts.puzzles(2, 2, learned))
    play_briefly(start, sets, "thoughts", arm, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("arm", grpo_grounding.ARMS)
def test_an_arm_of_points_trains(arm: str, points: Sets, tmp_path: Path) -> None:
    start = vision_model(tmp_path / "start", side=32, width=32, layers=1)
    play_briefly(start, points, "grounding", arm, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "arm"), [(kind, arm) for kind, (arms, _) in grpo_tagged.KINDS.items() for arm in arms]
)
def test_an_arm_of_answers_in_tags_trains(kind: str, arm: str, points: Sets, tmp_path: Path) -> None:
    start = vision_model(
        tmp_path / "start", side=32, width=32, layers=1, tokenizer=character_tokenizer(*grpo_tagged.WORDS)
    )
    play_briefly(start, points, kind, arm, tmp_path / "out")


def test_tags_are_one_token_each_and_are_read_again() -> None:
    tokenizer = character_tokenizer(*grpo_tagged.WORDS)
    answer = "<think></think><answer>[1, 2, 3, 4]</answer>"
    ids = tokenizer.encode(answer)
    assert len(ids) == 4 + len("[1, 2, 3, 4]")
    assert tokenizer.decode(ids, skip_special_tokens=True) == answer


def test_the_start_clones_answers_in_tags_to_each_form_of_question(points: Sets) -> None:
    drawn = grpo_tagged.draw_answers(tuple(points.learned) * 50, random.Random(0))
    thinking = [answer for example, answer in drawn if "<think>" in example.messages[0][1]]
    assert 0.7 < len(thinking) / len(drawn) < 0.8
    tagged = [answer for answer in thinking if answer.startswith("<think></think><answer>")]
    assert 0.65 < len(tagged) / len(thinking) < 0.85
    assert {answer[len("<think></think><answer>")] for answer in tagged} >= {"["}, "boxes"
    longest = max(len(answer) for _, answer in drawn) - sum(map(len, grpo_tagged.WORDS)) + len(grpo_tagged.WORDS)
    assert longest < grpo_tagged.BASE["answer_tokens"], "and the end fits, too"


def test_questions_in_other_words_are_refused(points: Sets) -> None:
    other = points.learned[0].model_copy(update={"messages": (("user", "Click the red square."),)})
    with pytest.raises(BadInput, match="does not ask for an element"):
        grpo_tagged.draw_answers([other] * 8, random.Random(0))


@pytest.mark.slow
def test_a_start_with_tags_is_cloned(
    points: Sets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grpo_grounding, "BATCH", 4)
    fresh = vision_model(
        tmp_path / "fresh", side=32, width=32, layers=1, tokenizer=character_tokenizer(*grpo_tagged.WORDS)
    )
    place = grpo_grounding.clone(
        fresh, tmp_path / "model", lambda rng: grpo_tagged.draw_answers(points.learned, rng), 3
    )
    assert place.exists()
    losses = [float(line.rpartition(" ")[2]) for line in capsys.readouterr().out.splitlines()]
    assert losses[-1] < losses[0]


def gradient_source(kind: str, points: Sets, folder: Path) -> grpo_gradients.Source:
    """A tiny start that has learned eight answers by heart, and their examples, where the benchmark reads them."""
    if kind == grpo_gradients.POINTS:
        fresh = vision_model(folder / "fresh", side=32, width=32, layers=1)
        rows = [(example, grpo_grounding.centre_of(example)) for example in points.learned]
        grpo_grounding.clone(fresh, folder / "start" / "model", lambda _: rows, 60)
        write_examples(folder / "learned.jsonl", points.learned)
        source = grpo_gradients.source_of(kind, folder)
    else:
        fresh = fresh_model(folder / "fresh", width=32, layers=1)
        learned = grpo_puzzles.sets_of(grpo_puzzles.parse_kind(kind))[1][:8]
        job = SupervisedJob(
            start=fresh,
            optimization=Optimization(learning_rate=1e-2, epochs=60, batch_rows=8),
            compute=Compute(threads=1, max_tokens=512),
        )
        supervised(job, reference_rows(learned, puzzle_tokenizer()), folder / kind / "start")
        source = grpo_gradients.source_of(kind, folder)._replace(examples=learned)
    small = {"answer_tokens": 12, "group": 4, "optimization": {"batch_rows": 16}}
    return source._replace(base=merged(source.base, small))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["maze", "points"])
def test_an_interrupted_measurement_of_gradients_has_equal_numbers(
    kind: str, points: Sets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpo_gradients, "_SAVED_EVERY", 1)
    monkeypatch.setattr(grpo_grounding, "BATCH", 4)
    whole = gradient_source(kind, points, tmp_path)
    expected = grpo_gradients.projections(whole, 6)
    assert {len(each) for each in expected.values()} == {3}
    assert len({tuple(each) for each in expected.values()}) > 1, "rewards differ"
    part = whole._replace(kept=tmp_path / "part.pt")
    saved = grpo_gradients._added
    left = iter(range(4))

    def stopping(*given: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return saved(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(grpo_gradients, "_added", stopping)
        with pytest.raises(KeyboardInterrupt):
            grpo_gradients.projections(part, 6)
    resumed = grpo_gradients.projections(part, 6)
    assert {name: pytest.approx(each, rel=1e-4, abs=1e-9) for name, each in resumed.items()} == expected
    with pytest.raises(BadInput, match="of other examples, batches or rewards"):
        grpo_gradients.projections(part, 8)


def test_gradients_are_compared_with_the_rival_of_their_kind() -> None:
    assert grpo_gradients.rewards_of("points").keys() - grpo_gradients.rewards_of("maze").keys() == {"GUI-G²"}
    assert grpo_gradients.rewards_of("maze").keys() - grpo_gradients.rewards_of("points").keys() == {
        "matched cells alone"
    }


def test_the_signal_to_noise_is_compared_with_the_binary_rewards() -> None:
    parts = [float(part) for part in np.random.default_rng(0).normal(1, 1, 40)]
    along = {"binary": parts, "tiered, K = 4": [2 * part for part in parts], "other": sorted(parts)[5:] + [0.0] * 5}
    binary, tiers, other = grpo_gradients.statistics_by_reward(along)
    assert tiers["less binary's"] == pytest.approx(0), "a scale changes no ratio"
    assert tiers["interval of the difference"] == pytest.approx([0, 0])
    assert other["less binary's"] == pytest.approx(other["signal to noise"] - binary["signal to noise"])
    assert binary["variance to K = 4"] == pytest.approx(0.25)


def test_a_missing_start_is_named(tmp_path: Path) -> None:
    for kind, maker in (("points", "grpo_grounding"), ("maze", "grpo_puzzles")):
        with pytest.raises(BadInput, match=f"no start or no examples: `python -m benchmarks.{maker} play`"):
            grpo_gradients.source_of(kind, tmp_path)


def test_the_sets_of_points_are_written_for_later_commands(points: Sets, tmp_path: Path) -> None:
    write_examples(tmp_path / "learn.jsonl", points.learned)
    write_examples(tmp_path / "measure.jsonl", points.measured)
    cloned, sets = grpo_grounding.sets_of(tmp_path / "learn.jsonl", tmp_path / "measure.jsonl", tmp_path / "out")
    assert len(cloned) == len(sets.learned) == 4
    assert read_examples(tmp_path / "out" / "learned.jsonl") == sets.learned
    assert read_examples(tmp_path / "out" / "measured.jsonl") == sets.measured
