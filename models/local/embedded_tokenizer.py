"""The embedded model's tokenizer without transformers: `tokenizer.json` through the library `tokenizers`.

It has the methods of a transformers tokenizer that :mod:`models.prompting.prompt_tokens` and
:mod:`models.local.continuation` call, with the same token ids and text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Tokenizer

_NAMED_TOKENS: Final = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


class LightTokenizer:
    """Reads a folder written by `PreTrainedTokenizerFast.save_pretrained`; its chat template is in the config."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError, or ValueError for an invalid file."""
        config: dict[str, Any] = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        self._tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
        self.chat_template: str | None = config.get("chat_template")
        self.model_max_length: int | None = config.get("model_max_length")
        self.special: dict[str, str] = {name: config[name] for name in _NAMED_TOKENS if config.get(name)}
        """By name in the config, e.g. `eos_token`."""
        self.all_special_tokens: list[str] = [*self.special.values(), *config.get("extra_special_tokens", ())]
        self.added_tokens_decoder: dict[int, AddedToken] = self._tokenizer.get_added_tokens_decoder()

    is_fast = True
    """It has offset mappings."""

    @property
    def unk_token_id(self) -> int | None:
        return self.token_id("unk_token")

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """The id of one token of the vocabulary; else the id of the unknown token, or None."""
        number = self._tokenizer.token_to_id(token)
        return self.unk_token_id if number is None else number

    def __call__(
        self, text: str, *, add_special_tokens: bool, return_offsets_mapping: bool = True, verbose: bool = False
    ) -> dict[str, list[Any]]:
        """`input_ids` and `offset_mapping`: start and end of each token in *text*, in characters."""
        read = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": read.ids, "offset_mapping": read.offsets}

    def token_id(self, name: str) -> int | None:
        """The id of a token that the config names, e.g. `eos_token`; None if it names none."""
        return self._tokenizer.token_to_id(self.special[name]) if name in self.special else None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(
        self, tokens: Sequence[int], *, skip_special_tokens: bool = False, clean_up_tokenization_spaces: bool = False
    ) -> str:
        """The text of *tokens*. Raises ValueError if cleaning up is requested, which no caller needs."""
        if clean_up_tokenization_spaces:
            raise ValueError("the text of a completion is never cleaned up")
        return self._tokenizer.decode(list(tokens), skip_special_tokens=skip_special_tokens)

    def apply_chat_template(
        self, turns: Sequence[dict[str, str]], *, add_generation_prompt: bool, tokenize: bool = False
    ) -> str:
        """The text of a conversation, rendered as in transformers. Raises ValueError if token ids are requested or
        there is no template, jinja2.TemplateError if the template refuses *turns*."""
        if tokenize or self.chat_template is None:
            raise ValueError("only text is rendered, and only with a chat template")
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        template = environment.from_string(self.chat_template)
        return template.render(messages=turns, add_generation_prompt=add_generation_prompt, **self.special)
