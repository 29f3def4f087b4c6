"""Constrained decoding in this process: masks of the tokens that a grammar allows next, by `llguidance`.

A grammar is text in GBNF, the notation of llama.cpp, which vLLM accepts as well. Its start rule is `root`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from models.base import ModelRejected
from models.optional import require

Mask = NDArray[np.bool_]

_ONE_LINE: Final[Any] = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON as Python writes it. Free white space would allow answers that never end."""


class GrammarError(ModelRejected):
    """The grammar is invalid, or too complex for the matcher. The message is one line."""


def takes_grammars(tokenizer: Any) -> bool:
    """Whether a token of *tokenizer* stands for the same bytes wherever it stands, as masks need. A token of WordPiece,
    or of BPE with a prefix for the inside of words, such as those of the embedded model, does not. Of a tokenizer that
    is written in Python, not of the library `tokenizers`, it is not known."""
    return tokenizer.is_fast and not getattr(tokenizer.backend_tokenizer.model, "continuing_subword_prefix", None)


def thinks(tokenizer: Any) -> bool:
    """Whether *tokenizer* has a token that ends a thought. A JSON Schema would forbid the thought before the answer."""
    return "</think>" in tokenizer.get_vocab()


class GrammarCompiler:
    """Starts matchers for one tokenizer. Its tables take about a second to build, once."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: frozenset[int]) -> None:
        """*vocabulary*: the number of logits of a row; *ends*: the tokens that end an answer.

        Raises :class:`models.base.ModelUnavailable` without the package `llguidance`.
        """
        require("an answer that follows a grammar", "local", "llguidance")
        from llguidance.hf import from_tokenizer

        self._vocabulary = vocabulary
        self._ends = sorted(ends)
        self._tokenizer = from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=self._ends or None)

    def start(self, grammar: str) -> GrammarState:
        """A matcher at the start of an answer. Raises :class:`GrammarError`."""
        from llguidance import LLMatcher, gbnf_to_lark

        try:
            lark = gbnf_to_lark.gbnf_to_lark(grammar)
        except Exception as error:  # noqa: BLE001 - the converter raises plain exceptions
            raise GrammarError(f"the grammar is not valid GBNF: {' '.join(str(error).split())[:200]}") from None
        return self._start(LLMatcher.grammar_from_lark(lark))

    def start_json(self, schema: str) -> GrammarState:
        """A matcher at the start of an answer that is JSON of *schema*, on one line. Raises :class:`GrammarError`, also
        for a schema with keywords that the matcher does not know."""
        from llguidance import LLMatcher

        return self._start(LLMatcher.grammar_from_json_schema(schema, overrides=_ONE_LINE))

    def _start(self, grammar: str) -> GrammarState:
        from llguidance import LLMatcher

        return GrammarState(LLMatcher(self._tokenizer, grammar, log_level=0), self._vocabulary)


class GrammarState:
    """The position in one answer: which tokens may follow."""

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher = matcher
        self._bits = np.zeros((1, (vocabulary + 31) // 32), dtype=np.int32)
        self._vocabulary = vocabulary
        self._check()

    def allowed(self) -> Mask:
        """The tokens that may come next: [V] booleans, at least one of them true. Raises :class:`GrammarError`."""
        from llguidance.numpy import fill_next_token_bitmask

        fill_next_token_bitmask(self._matcher, self._bits)
        self._check()
        octets = self._bits.view(np.uint8).reshape(-1)
        return np.unpackbits(octets, bitorder="little")[: self._vocabulary].astype(np.bool_)

    def accept(self, token: int) -> bool:
        """Appends *token*; returns whether the answer may still continue. Raises :class:`GrammarError`."""
        self._matcher.consume_token(token)
        self._check()
        return not self._matcher.is_stopped()

    def forced(self) -> list[int]:
        """Appends and returns the tokens without an alternative, in the usual encoding of their text; often none.
        Raises :class:`GrammarError`."""
        tokens = self._matcher.compute_ff_tokens()
        self._matcher.consume_tokens(tokens)
        self._check()
        return tokens

    def _check(self) -> None:
        if self._matcher.is_error():
            raise GrammarError(f"grammar: {' '.join(self._matcher.get_error().split())[:200]}")
