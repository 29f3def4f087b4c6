"""The grammars in xgrammar, vLLM's default backend, which reads the same notation as llama.cpp.

Skipped where xgrammar is not installed; vLLM brings it.
"""

from __future__ import annotations

from typing import Any

import pytest

from envs.core.action_languages import IDS, PROGRAM, Language
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.grammar import grammar
from envs.core.actions import AnswerDialog, Click, Stop
from tests.envs.core.test_grammar import IMPOSSIBLE, PAGE, POSSIBLE, ending_grammar, named_grammar, with_rationale

xgrammar: Any = pytest.importorskip("xgrammar")
SHAPES = {
    "single": grammar(PROGRAM, PAGE),
    "several": grammar(PROGRAM, PAGE, most=3),
    "thoughts": grammar(PROGRAM, PAGE, thoughts=True),
    "id": grammar(IDS, PAGE),
    "id-several": grammar(IDS, PAGE, most=3),
    "id-thoughts": grammar(IDS, PAGE, thoughts=True),
}


def compiled(text: str) -> Any:
    """*text* for a vocabulary of one token for each octet."""
    octets = [bytes([octet]) for octet in range(256)]
    vocabulary = xgrammar.TokenizerInfo([*octets, b"</s>"], stop_token_ids=[256])
    return xgrammar.GrammarCompiler(vocabulary, max_threads=1).compile_grammar(text)


def accepts(made: Any, answer: str) -> bool:
    """Whether *answer* is a complete sentence."""
    matcher = xgrammar.GrammarMatcher(made)
    return matcher.accept_string(answer.encode()) and matcher.accept_token(256)


@pytest.mark.parametrize("shape", SHAPES)
def test_xgrammar_accepts_the_actions_that_the_page_allows(shape: str) -> None:
    language, made = IDS if shape.startswith("id") else PROGRAM, compiled(SHAPES[shape])
    assert [action for action in POSSIBLE if not accepts(made, language.show(action))] == []
    assert [action for action in IMPOSSIBLE if accepts(made, language.show(action))] == []


def test_xgrammar_accepts_a_label_before_its_action() -> None:
    made = compiled(named_grammar())
    action = PROGRAM.show(Click(ref=1))
    assert accepts(made, f'# Element: button "Save"\n{action}')
    assert not accepts(made, f'# Element: file "Photo"\n{action}')
    assert not accepts(made, action), "an action on a control needs its label"


@pytest.mark.parametrize("language", [IDS, PROGRAM], ids=["id", "program"])
def test_xgrammar_ends_the_task_only_with_a_last_step_to_do(language: Language) -> None:
    made, stop = compiled(ending_grammar(language)), Stop(answer="34 EUR")
    assert accepts(made, with_rationale(language, "Done: Shop is open. To do: answer with 34 EUR.", stop))
    assert not accepts(made, with_rationale(language, "Done: nothing. To do: open Shop, answer.", stop))


@pytest.mark.parametrize("language", [IDS, PROGRAM], ids=["id", "program"])
def test_xgrammar_begins_a_rationale_with_the_given_text(language: Language) -> None:
    made = compiled(grammar(language, PAGE, opening="Not yet: sent. To do: "))
    assert accepts(made, with_rationale(language, "Not yet: sent. To do: press Send.", Click(ref=1)))
    assert not accepts(made, with_rationale(language, "Done: sent. To do: press Send.", Click(ref=1)))


def test_xgrammar_accepts_the_answer_to_a_dialog_alone() -> None:
    made = compiled(grammar(PROGRAM, PageChoices(controls=(1,), dialog=True)))
    assert accepts(made, PROGRAM.show(AnswerDialog(accept=True, text="Ann")))
    assert not accepts(made, PROGRAM.show(Click(ref=1)))
