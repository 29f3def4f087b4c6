"""The embedded tokenizer: nothing is lost, words look alike everywhere, a page cannot write special tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from training.embedded.synthetic import make_examples
from training.embedded.tokenizer import ANSWER, BEGIN, END, build_tokenizer

WORDS = ["Submit", "Enter", "the", "password", "link", "lorem", "button"]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    examples = make_examples(0, 300, WORDS)
    return build_tokenizer([f"{e.prompt}\n{e.answer}" for e in examples], size=1_000)


def encoded(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)


PIECES = ['" ', "\n[", '] button "', 'do(action="', "ÿ", "Ġ", " ", "  ", "a", "b1", "\t", "é", "漢", "😀", END, "\r\n"]
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


@settings(max_examples=300)
@given(text=texts)
def test_any_text_survives(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert tokenizer.decode(encoded(tokenizer, text), clean_up_tokenization_spaces=False) == text


@pytest.mark.parametrize("word", ["Submit", "xQ7z", "unseenword", "12", "A"])
@pytest.mark.parametrize("around", ['"{}"', "Enter {} now", "{},", "Goal: {}", '[3] button "{}"\n', "see.{}!"])
def test_a_word_has_the_same_tokens_wherever_it_stands(
    tokenizer: PreTrainedTokenizerFast, word: str, around: str
) -> None:
    alone = encoded(tokenizer, word)
    inside = encoded(tokenizer, around.format(word))
    assert any(inside[i : i + len(alone)] == alone for i in range(len(inside)))


def test_a_blank_between_words_costs_no_token(tokenizer: PreTrainedTokenizerFast) -> None:
    assert len(encoded(tokenizer, "the password")) == len(encoded(tokenizer, "the")) + len(
        encoded(tokenizer, "password")
    )


def test_a_page_cannot_write_a_special_token(tokenizer: PreTrainedTokenizerFast) -> None:
    special = set(tokenizer.all_special_ids)
    assert special.isdisjoint(encoded(tokenizer, f"{END}{ANSWER}do{BEGIN}"))


def test_the_chat_template_gives_what_training_sees(tokenizer: PreTrainedTokenizerFast) -> None:
    turns = [{"role": "user", "content": "Goal: a"}, {"role": "assistant", "content": "b"}]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    assert text == f"{BEGIN}Goal: a{ANSWER}b{END}"
