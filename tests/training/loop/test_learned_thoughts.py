"""A policy declares the thoughts of the rows that it learned from, not those of its start."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from models.embedded import embedded_dir
from models.local.declarations import Thoughts, declare_thoughts, declared_thoughts, thoughts_of_spec
from models.prompting.thought_request import THOUGHT_REQUEST
from tests.agent.episodes import Play, write_run
from tests.training.trajectories import embedded_tokenizer, rows_of, sampled, trajectory
from training.data.cache import write_rows, write_trajectories
from training.data.columns import Column
from training.engine.checkpoints import policy_spec
from training.loop.data import ReplayCounts
from training.loop.parts import write_record
from training.loop.phase import learn
from training.loop.phase_context import PhaseContext
from training.loop.settings import load_settings
from training.loop.sft import SupervisedSettings, fine_tune

FIRST = 1_000_000
"""First MiniWoB++ seed for training."""
THOUGHT = "<think>the second</think>words"
ASKED = f"{THOUGHT}\n{THOUGHT_REQUEST}"
PLAIN = "words"


@pytest.fixture
def start(tmp_path: Path) -> Path:
    shutil.copytree(embedded_dir(), tmp_path / "start")
    return tmp_path / "start"


@pytest.mark.parametrize(
    ("before", "texts", "after", "says"),
    [
        ("asked", (ASKED, ASKED), "asked", ""),
        ("asked", (ASKED, f"{ASKED}\n\nAnswer again with one action."), "asked", ""),
        ("tags", (PLAIN, THOUGHT), "tags", ""),
        ("asked", (PLAIN, PLAIN), None, "have no thoughts: the result declares none"),
        ("asked", (ASKED, THOUGHT), "tags", "not every prompt asks for one: the result declares tags"),
        ("tags", (ASKED, ASKED), "asked", "ask for a thought in every prompt: the result declares asked"),
        (None, (THOUGHT, THOUGHT), "tags", ""),
        (None, (PLAIN, PLAIN), None, ""),
    ],
)
def test_a_fine_tuning_declares_the_thoughts_of_its_rows(
    before: Thoughts | None, texts: Sequence[str], after: Thoughts | None, says: str, start: Path
) -> None:
    """The text of an episode is its prompt and its answer."""
    declare_thoughts(start, before)
    runs = write_run(
        start.with_name("runs"), [Play(seed=FIRST + number, text=text) for number, text in enumerate(texts)]
    )
    settings = SupervisedSettings.load(None, ["compute.cpu=true", "compute.threads=1", "optimization.epochs=1"])
    lines: list[str] = []
    model = fine_tune([runs.path], str(start), start.with_name("out"), settings, lines.append).model
    assert declared_thoughts(model) == after
    changed = [line for line in lines if "the start declares thoughts" in line]
    assert [says in line for line in changed] == [True] * bool(says)


def learned(policy: Path, folder: Path, page: str, answer: str, *changes: str) -> tuple[Path, list[str]]:
    """The actor of a phase on a won and a lost episode, and the lines of the log; a replayed episode never thinks."""
    (folder / "data").mkdir(parents=True)
    encode = embedded_tokenizer().encode
    own, other = (
        (tuple(encode(prompt, add_special_tokens=False)), tuple(encode(text, add_special_tokens=False)))
        for prompt, text in ((page, answer), ("another page", PLAIN))
    )
    new = tuple(trajectory(sampled(own, own), name=name, success=name == "won") for name in ("won", "lost"))
    replayed = (trajectory(sampled(other), name="earlier"),)
    rows = rows_of((*new, *replayed))
    columns = {Column.REFERENCE: (-1.0,) * len(rows), Column.ALLOWED: (True,) * len(rows)}
    write_rows(folder / "data" / "rows.parquet", rows, columns)
    write_trajectories(folder / "data" / "new.parquet", new)
    write_trajectories(folder / "data" / "replayed.parquet", replayed)
    write_record(folder / "data" / "replay.json", ReplayCounts())
    quick = ("compute.cpu=true", "compute.threads=1", "arm=awr", "actor.optimization.epochs=1")
    lines: list[str] = []
    context = PhaseContext(load_settings(None, [*quick, *changes]), 1, folder, policy, {}, policy, (), log=lines.append)
    with context.running():
        learn(context, ())
    return folder / "actor" / "model", lines


def test_an_actor_keeps_the_thoughts_that_its_rollouts_were_asked_for(start: Path, tmp_path: Path) -> None:
    declare_thoughts(start, "asked")
    actor, lines = learned(start, tmp_path / "phase-1", f"page\n{THOUGHT_REQUEST}", THOUGHT)
    assert thoughts_of_spec(policy_spec(actor)) == "asked"
    assert not [line for line in lines if "declares thoughts" in line]


@pytest.mark.parametrize("shared_base", ["false", "true"])
def test_an_actor_whose_rollouts_had_no_thoughts_declares_none(shared_base: str, start: Path, tmp_path: Path) -> None:
    """The base of an adapter still declares thoughts."""
    declare_thoughts(start, "tags")
    lora = ("compute.shared_base=true", "compute.lora.rank=4") if shared_base == "true" else ()
    actor, lines = learned(start, tmp_path / "phase-1", "page", PLAIN, *lora)
    assert (actor / "adapter_config.json").exists() == (shared_base == "true")
    assert not thoughts_of_spec(policy_spec(actor)) and thoughts_of_spec(f"local:{start}")
    assert any("the start declares thoughts (tags)" in line and "have no thoughts" in line for line in lines)
