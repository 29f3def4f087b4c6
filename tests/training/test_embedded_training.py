"""The embedded model's training: data that can be trusted, a loop that resumes, a folder that stays small."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from envs.core.action_languages import PROGRAM
from envs.core.actions import Click, Select, Stop, Type
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.suites.miniwob.task_sets import EVALUATION_SEEDS, NAMED_TASKS
from models.embedded import embedded_dir
from training.embedded import lookalikes_sites
from training.embedded.augment import Augmented, renamed, shifted, wording
from training.embedded.demos import Recorded, as_lesson
from training.embedded.evaluate import main as evaluate
from training.embedded.export import MAX_BYTES, export
from training.embedded.lesson import Lesson, split
from training.embedded.lookalikes import LOOKALIKES
from training.embedded.mixture import Mixture, read_weights
from training.embedded.synthetic import FAMILIES, Example, Family, Sketch, make_examples
from training.embedded.tokenizer import ANSWER, BEGIN, build_tokenizer, with_words
from training.embedded.train import (
    Recipe,
    Shape,
    Trainer,
    build_model,
    encode,
    give_words,
    measure,
    rate_at,
    to_tensors,
)
from training.embedded.words import WordBag, lorem_words, package_words

TINY = Shape(width=32, layers=3, heads=2, inner=32)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    torch.set_num_threads(1)  # the tests share their cores with a browser
    return build_tokenizer([f"{e.prompt}\n{e.answer}" for e in make_examples(0, 300, lorem_words())], size=900)


@pytest.mark.parametrize(
    "family",
    [f for f, _ in (*FAMILIES, *LOOKALIKES, *lookalikes_sites.FAMILIES)],
    ids=lambda f: f"{f.__module__}.{f.__name__}",
)
def test_every_made_up_answer_is_an_action_on_a_control_of_its_page(family: Family) -> None:
    rng = random.Random(5)
    words = WordBag(rng, package_words()[:300], lorem_words())
    for _ in range(60):
        page = Sketch(rng, words)
        goal, answer = family(page)
        action = PROGRAM.parse(answer).action
        prompt = page.prompt(goal)
        assert prompt.startswith(f"Goal: {goal}\n")
        if isinstance(action, Click | Type | Select):
            assert f"[{action.ref}] " in prompt
        if isinstance(action, Type) and family.__name__ != "enter_date":
            assert action.text in prompt
        if isinstance(action, Stop):
            assert not action.answer or action.answer in prompt
        if isinstance(action, Select):
            assert f'"{action.option}"' in prompt.partition("options: ")[2]
        numbers = [int(n) for n in re.findall(r"(?:^|  |# |\| )\[(\d+)\] ", prompt, re.MULTILINE)]
        assert numbers == [n for n in range(1, page.refs + 1) if not page.at or n in numbers], "document order"


def test_nothing_is_trained_on_an_evaluation_seed() -> None:
    from envs.suites.miniwob.task_sets import FIRST_TRAINING_SEED

    assert max(EVALUATION_SEEDS) < 10_000 < FIRST_TRAINING_SEED
    assert len(set(NAMED_TASKS)) == 30


def row(seed: int, name: str, step: int = 1) -> Lesson:
    prompt = (
        f'Goal: Click on the "{name}" button.\nNext: {name} is clicked\nPage:\n[1] button "{name}"\n[2] button "Ok"'
    )
    return as_lesson(Recorded("click-button", seed, step, prompt, 'do(action="Click", element="1")'))


def test_renaming_keeps_the_wording_and_is_the_same_everywhere() -> None:
    rows = [row(seed, name) for seed, name in enumerate(["alpha", "beta", "gamma", "delta"])]
    kept = wording(rows)
    assert {"Goal", "Click", "button", "Ok"} <= kept
    assert "alpha" not in kept
    rng = random.Random(1)
    words = WordBag(rng, lorem_words())
    example = Example(
        "login", 'Goal: type "alpha"\nPage:\n[1] textbox "alpha"', 'do(action="Type", argument="alpha", element="1")'
    )
    seen: set[str] = set()
    for _ in range(20):
        other = renamed(
            rng,
            words,
            example,
            frozenset({"Goal", "type", "Page", "textbox", "do", "action", "Type", "argument", "element"}),
        )
        (text,) = re.findall(r'argument="(.*?)"', other.answer)
        assert other.prompt.count(f'"{text}"') == 2
        seen.add(text)
    assert len(seen) > 5


def test_the_milestone_line_can_be_dropped() -> None:
    planned, bare = row(0, "x").prompts
    assert "Next:" in planned
    assert "Next:" not in bare


def test_shifting_numbers_the_page_and_the_answer_alike() -> None:
    example = Example("t", 'Goal: [2] b\nPage:\n[1] link "a"\n[2] link "b"', 'do(action="Click", element="2")')
    seen: set[str] = set()
    for seed in range(30):
        other = shifted(random.Random(seed), example)
        (ref,) = re.findall(r'element="(\d+)"', other.answer)
        assert f'[{ref}] link "b"' in other.prompt
        assert other.prompt.startswith("Goal: [2] b\n"), "the goal is no part of the page"
        seen.add(ref)
    assert len(seen) > 5


def test_what_a_rater_quotes_stands_in_its_prompt_however_it_is_seen() -> None:
    prompt = 'Check: b is there\nGoal: b\nAt: /\nPage:\n[1] link "a"\n[2] link "b"'
    seen = Augmented(
        [Lesson("check", TaskRef(suite="sites", name="x", seed=n), (prompt,), 'yes: [2] link "b"') for n in range(4)],
        WordBag(random.Random(0), lorem_words()),
    )
    for seed in range(30):
        example = seen.draw(random.Random(seed))
        assert example.answer.removeprefix("yes: ") in example.prompt


def test_only_what_has_a_weight_is_seen() -> None:
    lessons = [row(seed, f"name{seed}") for seed in range(4)]
    seen = Mixture(lessons, weights=read_weights("miniwob_act=1"))
    rng = random.Random(0)
    assert {seen(rng, 0.0).task for _ in range(40)} == {"click-button"}
    both = Mixture(lessons, weights=read_weights("miniwob_act=1,general=1"))
    assert {"click-button"} < {both(rng, 0.0).task for _ in range(40)}
    with pytest.raises(BadInput, match="nothing to learn from of sites_act: --runs"):
        Mixture(lessons, weights=read_weights("sites_act=1,general=1"))


@pytest.mark.parametrize("text", ["sites_act", "sites_act=0", "sites_act=nan", "sites_act=inf", "act=1", ""])
def test_weights_that_are_none_are_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="is not PART=WEIGHT with a weight above 0; parts: general, shapes"):
        read_weights(text)


def test_words_become_tokens_and_all_else_reads_as_before(tokenizer: PreTrainedTokenizerFast) -> None:
    model: Any = build_model(TINY, tokenizer)
    new = with_words(tokenizer, ["Goal: find the Kruunuvuori archipelago", "an archipelago"], limit=2)
    assert len(new) == len(tokenizer) + 2
    known, strange = 'Goal: click\nPage:\n[1] button "Ok"', "Goal: the archipelago"
    assert encode(new, Example("t", known, known)) == encode(tokenizer, Example("t", known, known))
    ids, pieces = (one.encode(strange, add_special_tokens=False) for one in (new, tokenizer))
    assert len(ids) < len(pieces)
    assert new.decode(ids) == strange
    example = [encode(tokenizer, Example("t", known, known))]
    before = measure(model, example, 0)["loss"]
    table = model.get_input_embeddings().weight.detach().clone()
    give_words(model, tokenizer, new)
    grown = model.get_input_embeddings().weight
    assert torch.equal(grown[: len(table)], table)
    assert torch.allclose(grown[ids[-1]], table[pieces[pieces.index(ids[-2]) + 1 :]].mean(0))
    assert model.lm_head.weight is grown, "one table, read and written"
    assert measure(model, example, 0)["loss"] == pytest.approx(before, abs=0.05), "two words more to choose from"
    assert "archipelago" in new.get_vocab()
    assert "archipelago" not in with_words(tokenizer, [strange], limit=9, copied=['"archipelago"']).get_vocab()
    assert with_words(new, [strange], limit=0).get_vocab() == new.get_vocab()


def test_held_out_episodes_are_not_trained_on() -> None:
    rows = [row(seed, "x", step) for seed in range(10) for step in (1, 2)]
    kept, held = split(rows)
    assert {r.task.seed for r in kept}.isdisjoint(r.task.seed for r in held)
    assert len(kept) + len(held) == len(rows)
    assert held


def test_loss_counts_only_answers(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = encode(tokenizer, Example("t", "Goal: a", "do(b)"))
    begin, answer = (tokenizer.convert_tokens_to_ids(token) for token in (BEGIN, ANSWER))
    assert encoded.prompt[0] == begin
    assert encoded.prompt[-1] == answer
    ids, mask = to_tensors([encoded, encode(tokenizer, Example("t", "Goal: a longer one", "x"))], pad=0)
    assert ids.shape == mask.shape
    assert mask[0].sum() == len(encoded.answer)
    assert tuple(ids[0][mask[0]].tolist()) == encoded.answer


def test_padding_does_not_change_a_rows_loss(tokenizer: PreTrainedTokenizerFast) -> None:
    model = build_model(TINY, tokenizer)
    rows = [encode(tokenizer, e) for e in make_examples(1, 6, lorem_words())]
    alone = [measure(model, [one], 0)["loss"] * len(one.answer) for one in rows]
    together = measure(model, rows, 0)["loss"] * sum(len(one.answer) for one in rows)
    assert together == pytest.approx(sum(alone), rel=1e-4)


def test_the_rate_rises_then_falls_to_its_floor() -> None:
    recipe = Recipe(minutes=1, warmup=0.1, floor=0.02)
    rates = [rate_at(recipe, share / 100) for share in range(101)]
    assert rates[0] < 0.05
    assert max(rates) == pytest.approx(1.0)
    assert rates.index(max(rates)) == 10
    assert rates[-1] == pytest.approx(0.02)


def test_training_learns_reports_and_resumes(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    recipe = Recipe(minutes=0.08, batch_tokens=512, report_s=1.0, save_s=1.0, short_until=0.5)
    examples = {"general": make_examples(9, 20, lorem_words())}
    model = build_model(TINY, tokenizer)
    before = measure(model, [encode(tokenizer, e) for e in examples["general"]], 0)["loss"]
    ended = Trainer(model, tokenizer, Mixture([row(s, "alpha") for s in range(4)]), recipe, tmp_path).run(examples)
    assert ended.scores["general_loss"] < before
    assert (tmp_path / "log.jsonl").read_text().count("\n") >= 1
    again = Trainer(build_model(TINY, tokenizer, seed=7), tokenizer, Mixture([]), recipe, tmp_path)
    assert again.step == ended.step
    assert again.used == 1.0
    assert again.run(examples).scores == ended.scores


def test_an_export_loads_as_any_checkpoint(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    from models.providers.local_chat import LocalModel

    size = export(build_model(TINY, tokenizer), tokenizer, tmp_path, {"name": "test"})
    assert size == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert LocalModel.load(tmp_path).spec == f"local:{tmp_path}"


def test_the_shipped_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in embedded_dir().iterdir() if path.is_file()) <= MAX_BYTES


def test_seeds_that_are_none_are_one_line_before_anything_is_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["evaluate", "--seeds", "0-2,x"])
    with pytest.raises(SystemExit, match="2"):
        evaluate()
    assert capsys.readouterr().err.endswith("--seeds '0-2,x' is not a list of seeds: write for example 0-4 or 1,3,8\n")
