"""Thinking budgets."""

from __future__ import annotations

from typing import Any

import pytest

from models.thinking import AMBIGUOUS_TOKENS, STATIC_BUDGETS, thinking_tokens, validate_budget


@pytest.mark.parametrize("budget", ["auto", *STATIC_BUDGETS])
def test_known_budgets_pass(budget: Any):
    assert validate_budget(budget) == budget


@pytest.mark.parametrize(("typed", "budget"), [("256", 256), ("0", 0), ("16384", 16384)])
def test_digits_typed_on_a_command_line_are_numbers(typed: str, budget: int):
    assert validate_budget(typed) == budget


@pytest.mark.parametrize("budget", [-1, 1, 300, 32768, "", "max", "AUTO", "٢٥٦", True, False, None, 256.0])
def test_anything_else_is_refused_by_name(budget: Any):
    with pytest.raises(ValueError, match=r"is not one of: auto, 0, 256, 1024, 4096, 8192, 16384"):
        validate_budget(budget)


@pytest.mark.parametrize("budget", STATIC_BUDGETS)
def test_a_static_budget_is_spent_always(budget: int):
    assert thinking_tokens(budget, ambiguous=False) == thinking_tokens(budget, ambiguous=True) == budget


def test_auto_thinks_only_where_it_is_ambiguous():
    assert (thinking_tokens("auto", ambiguous=False), thinking_tokens("auto", ambiguous=True)) == (0, AMBIGUOUS_TOKENS)
