"""`anthropic:MODEL`: Claude with ANTHROPIC_API_KEY, or any server of the Messages API by a base URL.

`anthropic-browser:MODEL` and `anthropic-computer:MODEL` are the same models with Anthropic's client-side tool sets: as
a policy they answer with tool calls (:mod:`agent.episode.toolsets`), in other roles they are plain chat models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from models.base import ChatModel, ModelStatus, ModelUnavailable
from models.prices import own_prices, price_table
from models.provider import ModelOptions, ModelSpec, Provider, checked_url
from models.providers.anthropic_dialect import version_of
from models.providers.hosts import ANTHROPIC_HOST, is_vendors

ANTHROPIC_KEY: Final = "ANTHROPIC_API_KEY"
ANTHROPIC_URL: Final = "ANTHROPIC_BASE_URL"
Kind = Literal["anthropic", "anthropic-browser", "anthropic-computer"]
EXAMPLE_MODEL: Final = "claude-sonnet-5-5"
BROWSER_SINCE: Final = (4, 8)
"""The first version of a model with the browser tool set; a name without a version, of another server, may have it."""


@dataclass(frozen=True, slots=True)
class AnthropicSpec(ModelSpec):
    model: str
    kind: Kind = "anthropic"

    def __str__(self) -> str:
        return f"{self.kind}:{self.model}"

    def make(self, options: ModelOptions) -> ChatModel:
        if self.kind == "anthropic-browser" and (version_of(self.model) or BROWSER_SINCE) < BROWSER_SINCE:
            raise ModelUnavailable(
                f"{self}: the browser tool set needs Claude Opus 4.8 or later: use a later model, as in "
                f"anthropic-browser:{EXAMPLE_MODEL}, or anthropic-computer:{self.model}"
            )
        url = checked_url(_address(options))
        key = options.environ.get(ANTHROPIC_KEY) or None
        if key is None and is_vendors(url, ANTHROPIC_HOST):
            raise ModelUnavailable(
                f"{self} needs a key: set {ANTHROPIC_KEY}, or give the base URL of a server without keys"
            )
        from models.providers.anthropic_chat import AnthropicChat
        from models.providers.anthropic_tools import AnthropicTools

        if self.kind == "anthropic":
            return AnthropicChat(
                self.model, api_key=key, base_url=url, policy=options.policy, max_concurrent=options.max_concurrent
            )
        return AnthropicTools(
            self.model,
            toolset="browser" if self.kind == "anthropic-browser" else "computer",
            api_key=key,
            base_url=url,
            policy=options.policy,
            max_concurrent=options.max_concurrent,
        )

    @property
    def has_vendor_tools(self) -> bool:
        return self.kind != "anthropic"

    def takes_grammars(self, options: ModelOptions) -> bool:
        return False

    def base_url_protocol(self, options: ModelOptions) -> str:
        del options
        return "Anthropic"

    def price_known(self, options: ModelOptions) -> bool:
        hosted = is_vendors(_address(options), ANTHROPIC_HOST)
        return (hosted or own_prices()) and price_table().knows(self.model)


def _address(options: ModelOptions) -> str | None:
    return options.base_url or options.environ.get(ANTHROPIC_URL) or None


def _provider(kind: Kind) -> Provider:
    form = f"{kind}:MODEL"

    def status(environ: Mapping[str, str]) -> ModelStatus:
        examples = (f"{kind}:{EXAMPLE_MODEL}",)
        if environ.get(ANTHROPIC_KEY):
            return ModelStatus(form, usable=True, detail=f"{ANTHROPIC_KEY} is set", examples=examples)
        if not is_vendors(environ.get(ANTHROPIC_URL) or None, ANTHROPIC_HOST):
            return ModelStatus(form, usable=True, detail=f"{ANTHROPIC_URL} is set, no key", examples=examples)
        detail = f"set {ANTHROPIC_KEY}, or give --base-url of a server of the Messages API"
        return ModelStatus(form, usable=False, detail=detail, examples=examples)

    return Provider(form, lambda rest: AnthropicSpec(rest, kind), status)


PROVIDER = _provider("anthropic")
BROWSER = _provider("anthropic-browser")
COMPUTER = _provider("anthropic-computer")
