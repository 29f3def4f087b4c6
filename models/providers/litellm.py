"""`litellm:PROVIDER/MODEL`: any provider of LiteLLM (Bedrock, Azure, Vertex AI, Mistral, …), with that provider's keys.

LiteLLM reads keys and addresses from the environment of the process: `MISTRAL_API_KEY`, `AZURE_API_BASE`, … A base URL
(`--base-url`) takes precedence over the provider's address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.base import ChatModel, ModelStatus, ModelUnavailable
from models.optional import install_command, missing_modules, require
from models.prices import own_prices, price_table
from models.provider import ModelOptions, ModelSpec, Provider, checked_url
from models.thinking import Thinking, effort_of

FORM = "litellm:PROVIDER/MODEL"
EXTRA = "litellm"


@dataclass(frozen=True, slots=True)
class LiteLLMSpec(ModelSpec):
    provider: str
    """As LiteLLM names it: `bedrock`, `azure`, `vertex_ai`, `mistral`, …"""
    model: str

    def __str__(self) -> str:
        return f"litellm:{self.provider}/{self.model}"

    def make(self, options: ModelOptions) -> ChatModel:
        url = checked_url(options.base_url)
        require(str(self), EXTRA, "litellm")
        from models.providers.litellm_chat import LiteLLMChat

        return LiteLLMChat(
            self.provider, self.model, base_url=url, policy=options.policy, max_concurrent=options.max_concurrent
        )

    def base_url_protocol(self, options: ModelOptions) -> str:
        """What the server of `--base-url` must speak: each provider has its own protocol and key."""
        del options
        return {"openai": "OpenAI", "anthropic": "Anthropic"}.get(self.provider, self.provider)

    def takes_grammars(self, options: ModelOptions) -> bool:
        return False

    def ignores_thinking(self, thinking: Thinking) -> bool:
        """A budget becomes an effort of models that LiteLLM knows to think; an effort is sent to every model."""
        if effort_of(thinking) is not None or missing_modules("litellm"):
            return False
        from models.providers.litellm_setup import loaded

        return not loaded().reasons(self.provider, self.model)

    def price_known(self, options: ModelOptions) -> bool:
        """By a table of one's own, or by that of LiteLLM, which has no prices of other servers."""
        if own_prices() and price_table().knows(self.model):
            return True
        if options.base_url or missing_modules("litellm"):
            return False
        from models.providers.litellm_setup import loaded

        return loaded().prices(self.provider, self.model)


def _parse(rest: str) -> LiteLLMSpec:
    provider, _, model = rest.partition("/")
    if not provider or not model:
        example = "litellm:mistral/mistral-large-latest"
        raise ModelUnavailable(f"model spec {'litellm:' + rest!r} is not {FORM}, as in {example}")
    return LiteLLMSpec(provider, model)


def _status(environ: Mapping[str, str]) -> ModelStatus:
    del environ
    missing = missing_modules("litellm")
    detail = f"needs litellm: {install_command(EXTRA)}" if missing else "needs the variables of the provider, e.g. keys"
    examples = ("litellm:mistral/mistral-large-latest", "litellm:bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
    return ModelStatus(FORM, usable=not missing, detail=detail, examples=examples)


PROVIDER = Provider(FORM, _parse, _status)
