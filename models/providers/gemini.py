"""`gemini:MODEL`: Google Gemini with GEMINI_API_KEY or GOOGLE_API_KEY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.base import ChatModel, ModelStatus, ModelUnavailable
from models.prices import price_table
from models.provider import ModelOptions, ModelSpec, Provider, checked_url
from models.thinking import Thinking

if TYPE_CHECKING:
    from models.providers.gemini_families import Family

GEMINI_URL = "GOOGLE_GEMINI_BASE_URL"
GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
FORM = "gemini:MODEL"


@dataclass(frozen=True, slots=True)
class GeminiSpec(ModelSpec):
    model: str

    def __str__(self) -> str:
        return f"gemini:{self.model}"

    def make(self, options: ModelOptions) -> ChatModel:
        name = _key_name(options.environ)
        if name is None:
            raise ModelUnavailable(f"{self} needs a key: set {' or '.join(GEMINI_KEYS)}")
        url = checked_url(options.environ.get(GEMINI_URL) or None)
        from models.providers.gemini_chat import GeminiChat

        return GeminiChat(
            self.model,
            api_key=options.environ[name],
            base_url=url,
            policy=options.policy,
            max_concurrent=options.max_concurrent,
        )

    def takes_grammars(self, options: ModelOptions) -> bool:
        return False

    def ignores_thinking(self, thinking: Thinking) -> bool:
        del thinking
        return self._family.thinking is None

    @property
    def own_temperature(self) -> bool:
        return self._family.own_temperature

    @property
    def _family(self) -> Family:
        from models.providers.gemini_families import family_of

        return family_of(self.model)

    def price_known(self, options: ModelOptions) -> bool:
        return price_table().knows(self.model)


def _key_name(environ: Mapping[str, str]) -> str | None:
    return next((name for name in GEMINI_KEYS if environ.get(name)), None)


def _status(environ: Mapping[str, str]) -> ModelStatus:
    examples = ("gemini:gemini-3.1-pro-preview", "gemini:gemini-2.5-flash")
    name = _key_name(environ)
    detail = f"{name} is set" if name else f"set {' or '.join(GEMINI_KEYS)}"
    return ModelStatus(FORM, usable=name is not None, detail=detail, examples=examples)


PROVIDER = Provider(FORM, GeminiSpec, _status)
