"""Metrics of texts: results of the package `rouge` 1.0.1, which VisualWebBench uses."""

from __future__ import annotations

import pytest

from training.grpo.rewards import TextTarget, is_right, read_completion, similarity
from training.grpo.rewards.texts import rouge_l, word_f1

CASES = [
    ("Shop new phones. Free delivery in Rome", "Free delivery of new phones. Shop in Rome today", 0.875, 0.875),
    ("the cart is the cart", "the new cart", 0.666667, 0.666667),
    ("24 euros", "24 euros in total", 0.666667, 0.666667),
    ("The Cart", "the cart", 0.0, 0.0),
    ("a b c d. b d", "d c b. a d", 1.0, 0.75),
]
"""Answer, reference, `rouge-1` f, `rouge-l` f."""


@pytest.mark.parametrize(("answer", "reference", "unigrams", "subsequence"), CASES)
def test_numbers_are_those_of_the_package(answer: str, reference: str, unigrams: float, subsequence: float) -> None:
    assert word_f1(answer, reference) == pytest.approx(unigrams, abs=1e-6)
    assert rouge_l(answer, reference) == pytest.approx(subsequence, abs=1e-6)


@pytest.mark.parametrize("answer", ["", " ", ".", " . "])
def test_an_answer_without_words_is_worth_nothing(answer: str) -> None:
    assert word_f1(answer, "a") == rouge_l(answer, "a") == 0


def test_the_most_similar_answer_counts() -> None:
    target = TextTarget(answers=("24 euros in total", "24 EUR"), metric="word_f1")
    assert similarity(target, read_completion("<think>24 EUR</think>24 euros")) == pytest.approx(2 / 3)
    assert is_right(target, read_completion("24 EUR")) and not is_right(target, read_completion("24 euros"))
