"""`openai:MODEL`: OpenAI with OPENAI_API_KEY, or any server of its protocol by a base URL (llama.cpp, Ollama, …).

`openai-computer:MODEL` is the same with OpenAI's computer tool: as a policy it answers with calls of it, in other
roles it is a plain chat model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from models.base import ChatModel, ModelStatus, ModelUnavailable
from models.prices import own_prices, price_table
from models.provider import ModelOptions, ModelSpec, Provider, checked_url, served_folders
from models.providers.hosts import OPENAI_HOST, is_vendors
from models.thinking import Thinking, effort_of

OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_URL = "OPENAI_BASE_URL"
FORM = "openai:MODEL"
COMPUTER_FORM = "openai-computer:MODEL"


@dataclass(frozen=True, slots=True)
class OpenAISpec(ModelSpec):
    model: str
    computer: bool = False

    def __str__(self) -> str:
        return f"openai-computer:{self.model}" if self.computer else f"openai:{self.model}"

    def make(self, options: ModelOptions) -> ChatModel:
        url = checked_url(_address(options))
        key = options.environ.get(OPENAI_KEY) or None
        if key is None and is_vendors(url, OPENAI_HOST):
            raise ModelUnavailable(
                f"{self} needs a key: set {OPENAI_KEY}, or give the base URL of a server without keys"
            )
        from models.providers.openai_chat import OpenAIChat
        from models.providers.openai_computer import OpenAIComputer

        chat = OpenAIComputer if self.computer else OpenAIChat
        return chat(self.model, api_key=key, base_url=url, policy=options.policy, max_concurrent=options.max_concurrent)

    def checkpoint_folders(self) -> tuple[Path, ...]:
        return served_folders(self.model)

    def base_url_protocol(self, options: ModelOptions) -> str:
        return "OpenAI"

    @property
    def has_vendor_tools(self) -> bool:
        return self.computer

    def takes_grammars(self, options: ModelOptions) -> bool:
        """On a server of a base URL, which may be llama.cpp's or vLLM, and not for a model that always thinks."""
        from models.providers.openai_dialect import Dialect

        hosted = is_vendors(_address(options), OPENAI_HOST)
        return not (self.computer or hosted or Dialect.of_model(self.model, hosted=False).reasoning)

    def ignores_thinking(self, thinking: Thinking) -> bool:
        """A budget in tokens becomes an effort of models that are known to think; an effort is sent to every model."""
        from models.providers.openai_dialect import Dialect

        return effort_of(thinking) is None and not Dialect.of_model(self.model, hosted=True).reasoning

    def price_known(self, options: ModelOptions) -> bool:
        hosted = is_vendors(_address(options), OPENAI_HOST)
        return (hosted or own_prices()) and price_table().knows(self.model)


def _address(options: ModelOptions) -> str | None:
    return options.base_url or options.environ.get(OPENAI_URL) or None


def _status(environ: Mapping[str, str]) -> ModelStatus:
    examples = ("openai:gpt-4o", "openai:llama3.2:3b with --base-url http://127.0.0.1:11434/v1")
    if environ.get(OPENAI_KEY):
        return ModelStatus(FORM, usable=True, detail=f"{OPENAI_KEY} is set", examples=examples)
    if not is_vendors(environ.get(OPENAI_URL) or None, OPENAI_HOST):
        return ModelStatus(FORM, usable=True, detail=f"{OPENAI_URL} is set, no key", examples=examples)
    detail = f"set {OPENAI_KEY}, or give --base-url of a server of its protocol (vLLM, llama.cpp, Ollama)"
    return ModelStatus(FORM, usable=False, detail=detail, examples=examples)


def _computer_status(environ: Mapping[str, str]) -> ModelStatus:
    plain = _status(environ)
    return ModelStatus(COMPUTER_FORM, plain.usable, plain.detail, ("openai-computer:gpt-5.4",))


PROVIDER = Provider(FORM, OpenAISpec, _status)
COMPUTER = Provider(COMPUTER_FORM, lambda rest: OpenAISpec(rest, computer=True), _computer_status)
