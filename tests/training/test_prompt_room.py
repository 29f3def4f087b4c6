"""Training cuts a long prompt where play cuts it: room for an answer is reserved alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.episode.policy import MAX_ANSWER_TOKENS
from envs.core.actions import Click
from models.base import Message
from models.embedded import embedded_dir
from models.prompting.prompt_tokens import PromptTokens
from models.providers.local_chat import LocalModel
from tests.agent.episodes import Play, write_run
from tests.training.trajectories import embedded_tokenizer, trajectory, worded
from training.data.cache import read_rows
from training.data.rows import room_at_play
from training.engine.checkpoints import read_config
from training.grpo.examples import Example
from training.grpo.imitation import text_rows
from training.grpo.rewards import StepTarget
from training.loop.phase import learn
from training.loop.phase_context import PhaseContext
from training.loop.settings import load_settings

PAGE = "Goal: press Go\n" + "\n".join(f"{number} line" for number in range(200))
"""Fits the embedded model's context with a short answer, and not with the room that play leaves for one."""
CONTEXT, FIRST = 1_024, 1_000_000
"""The context in tokens, and the first MiniWoB++ seed for training."""


@pytest.fixture(scope="module")
def player() -> LocalModel:
    return LocalModel.load(embedded_dir())


def cut_at_play(player: LocalModel, messages: tuple[Message, ...]) -> tuple[int, ...]:
    whole = PromptTokens(embedded_tokenizer()).encode(messages, CONTEXT)
    played = player.prompt_tokens(messages, MAX_ANSWER_TOKENS)
    assert len(played) < len(whole) < CONTEXT - 50, "the page would fit with a short answer"
    return played


def test_examples_are_cut_as_at_play(player: LocalModel) -> None:
    example = Example(name="a", messages=(("user", PAGE),), target=StepTarget(action=Click(ref=1)))
    tokenizer = embedded_tokenizer()
    prompts, room = PromptTokens(tokenizer), room_at_play(read_config(embedded_dir()), tokenizer)
    (row,) = text_rows(prompts, [example], [(1, 2)], room=room, max_tokens=CONTEXT)
    assert row.prompt == cut_at_play(player, (Message("user", PAGE),)) and prompts.cut == 1
    (short,) = text_rows(prompts, [example], [(1, 2)], room=room, max_tokens=300)
    assert len(short) == 300


def test_replayed_demonstrations_are_cut_as_at_play(player: LocalModel, tmp_path: Path) -> None:
    """They have no token ids."""
    rollouts = write_run(tmp_path / "run", [Play(seed=FIRST), Play(seed=FIRST + 1, outcome="failure")])
    shown = trajectory(worded("words", page=PAGE), seed=FIRST + 2)
    quick = ("compute.cpu=true", "compute.threads=1", "arm=awr", "actor.optimization.epochs=1")
    changes = (f"compute.max_tokens={CONTEXT}", "replay.band.low=1", "replay.band.high=1e9")
    settings = load_settings(None, [*quick, *changes])
    policy, folder = embedded_dir(), tmp_path / "phase-1"
    context = PhaseContext(settings, 1, folder, policy, {}, policy, (shown,), log=list[str]().append)
    with context.running():
        learn(context, [rollouts.path])
    rows, _ = read_rows(folder / "data" / "rows.parquet")
    assert rows[-1].prompt == cut_at_play(player, (Message("user", PAGE),))
