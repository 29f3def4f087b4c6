"""Constrained answers: a policy that knows nothing answers with actions that are valid on the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from agent.config import RunConfig
from agent.episode.policy import ActionProposal, ModelPolicy, Turn
from agent.profiles.profile import named
from agent.run.components import open_components
from envs.core.action_languages import LANGUAGES, PROGRAM, Language
from envs.core.action_languages.choices import page_choices
from envs.core.action_languages.form_language import TO_DO
from envs.core.action_languages.grammar import grammar
from envs.core.actions import Click, Select, Stop, Type
from envs.core.observation import Element, ElementKey
from envs.core.tasks import Milestone, TaskRef
from models.base import ChatReply, ChatRequest, Usage
from models.local.grammar_masks import GrammarCompiler
from models.providers.local_chat import LocalModel
from tests.agent.episode.test_prompts import OBSERVATION, VIEW
from tests.models.local.test_local import save_checkpoint

ELEMENTS = tuple(
    Element(ref, ElementKey("", role, name, 0, "0" * 8), tag, (), None, options, None, shown=True)
    for ref, role, name, tag, options in (
        (1, "textbox", "Email", "input", ()),
        (2, "button", "Save", "button", ()),
        (3, "combobox", "Size", "select", ("S", "M")),
    )
)
PAGE = replace(VIEW, observation=replace(OBSERVATION, elements=ELEMENTS))
TURN = Turn(TaskRef(suite="s", name="t"), 0, 1, PAGE)
CLICK = 'do(action="Click", element="2")'


@pytest.fixture(scope="module")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    """Two layers over single bytes, with random weights."""
    yield LocalModel.load(save_checkpoint(tmp_path_factory.mktemp("checkpoint"), context=16_384), spec="local:tiny")


def proposed(model: LocalModel, language: Language, seed: int, *, constrained: bool, most: int = 1) -> ActionProposal:
    policy = ModelPolicy(
        model, language, "full", temperature=1.0, seed=seed, constrained=constrained, max_actions=most, deadline_s=600
    )
    return asyncio.run(policy.propose(replace(TURN, view=replace(PAGE, language=language))))


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 6), marks=pytest.mark.heavy)], ids=["two seeds", "further seeds"]
)
@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_random_model_answers_with_valid_actions(random_model: LocalModel, language: Language, seeds: range) -> None:
    refs = {element.ref for element in ELEMENTS}
    for seed in seeds:
        proposal = proposed(random_model, language, seed, constrained=True, most=3)
        assert proposal.action is not None, proposal.error
        assert len(proposal.calls) == 1, "no answer was sent back for repair"
        actions = (proposal.action, *(parsed.action for parsed in proposal.then))
        assert {action.ref for action in actions if isinstance(action, Click | Type | Select)} <= refs


def test_without_a_grammar_it_answers_with_none(random_model: LocalModel) -> None:
    assert proposed(random_model, PROGRAM, 0, constrained=False).action is None


class GrammarSeen:
    """Answers with a click, and keeps the grammar of the request."""

    spec = "test:grammar-seen"

    def __init__(self) -> None:
        self.grammar: str | None = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.grammar = request.grammar
        return ChatReply(CLICK, Usage(), self.spec, 0.0)

    async def aclose(self) -> None: ...


def test_a_grammar_is_sent_only_where_answers_are_constrained() -> None:
    model = GrammarSeen()
    for constrained in (False, True):
        asyncio.run(ModelPolicy(model, PROGRAM, "full", constrained=constrained).propose(TURN))
        assert (model.grammar is not None) is constrained
    assert model.grammar is not None and '"Click At' not in model.grammar, "points are not offered on this page"


@pytest.mark.parametrize(
    ("profile", "chars", "condition"),
    [("small", 120, True), ("small", 0, False), ("large", 120, False)],
)
def test_an_answer_of_a_small_model_ends_the_task_only_with_a_last_step_to_do(
    profile: str, chars: int, condition: bool
) -> None:
    """Prompts without a rationale, of models trained on demonstrations, know no steps to do. The same answers begin
    with the milestone to work on."""
    model = GrammarSeen()
    policy = ModelPolicy(
        model, PROGRAM, "full", constrained=True, profile=named(profile), rationale_chars=chars, exact_ratings=True
    )
    asyncio.run(policy.propose(TURN))
    assert model.grammar is not None and (TO_DO in model.grammar) is condition
    plan = (Milestone(id="a", text="The form is sent"),)
    planned = replace(PAGE, milestones=plan, z=(False,), next_milestone=0)
    asyncio.run(policy.propose(replace(TURN, view=planned)))
    assert ("Not yet: The form is sent. To do: " in model.grammar) is condition


@pytest.mark.parametrize(
    ("setting", "profile", "expected"),
    [
        ("auto", "large", True),
        ("auto", "compact", False),
        ("off", "large", False),
        ("on", "large", True),
        ("on", "compact", True),
    ],
)
async def test_local_models_are_constrained_unless_their_prompts_are_compact(
    tmp_path: Path, setting: str, profile: str, expected: bool
) -> None:
    folder = save_checkpoint(tmp_path / "checkpoint")
    config = RunConfig.model_validate(
        {"policy": f"local:{folder}", "planner": "none", "judge": "none", "constrained": setting, "profile": profile}
    )
    async with open_components(config, "miniwob") as components:
        policy = components.policy
        assert isinstance(policy, ModelPolicy)
        assert policy.constrained is expected


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_long_answer_to_a_schema_can_be_written(language: Language, tmp_path: Path) -> None:
    """Token by token, with the masks of a local model."""
    tokenizer = AutoTokenizer.from_pretrained(save_checkpoint(tmp_path / "checkpoint"))
    answer = json.dumps([{"name": f"Anna {number}", "city": "Zürich"} for number in range(60)], ensure_ascii=False)
    assert len(answer) > 2_000
    state = GrammarCompiler(tokenizer, len(tokenizer), frozenset({tokenizer.eos_token_id})).start(
        grammar(language, page_choices(PAGE.observation))
    )
    for token in tokenizer.encode(language.show(Stop(answer=answer)), add_special_tokens=False):
        assert state.allowed()[token]
        state.accept(token)
    assert state.allowed()[tokenizer.eos_token_id], "the answer is whole"
