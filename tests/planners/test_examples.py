"""The data files of few-shot examples."""

from __future__ import annotations

import pytest

from planners.examples import CATEGORIES, load_examples
from planners.model_planner import MAX_MILESTONE_CHARS, cleaned, comparable


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_category_has_eleven_or_twelve_examples_as_the_paper_has(category: str):
    examples = load_examples(category)
    assert len(examples) in (11, 12)
    assert len({example.task for example in examples}) == len(examples)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_example_would_pass_the_rules_that_answers_must_meet(category: str):
    for example in load_examples(category):
        assert len({comparable(text) for text in example.milestones}) == 4
        assert all(cleaned(text) == text and len(text) <= MAX_MILESTONE_CHARS for text in example.milestones)


def test_no_task_appears_in_two_categories():
    tasks = [example.task for category in CATEGORIES for example in load_examples(category)]
    assert len(set(tasks)) == len(tasks)


def test_an_example_that_asks_a_question_ends_with_the_answer():
    for category in CATEGORIES:
        for example in load_examples(category):
            if example.task.endswith("?"):
                assert example.milestones[-1].startswith("Answer"), example.task
