"""Parses model specs, as typed on the command line, and makes the models that they name.

`embedded`, `openai:MODEL`, `anthropic:MODEL`, `gemini:MODEL`, `vllm:URL#MODEL`, `litellm:PROVIDER/MODEL`,
`local:DIR[+ADAPTER]` and `scripted:FILE` are built in (:mod:`models.providers`). So are the models with their vendor's
tool sets, `anthropic-browser:MODEL`, `anthropic-computer:MODEL` and `openai-computer:MODEL`. Installed packages add
others through the entry-point group `mira.providers`.

Nothing here uses the network, and a provider's package is imported only when its model is made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from models.base import ChatModel, ModelStatus, ModelUnavailable, UnknownModel
from models.provider import ModelOptions, ModelSpec, Provider
from models.registry import Registry
from models.transport import RetryPolicy

PROVIDERS: Final = Registry(
    "mira.providers",
    Provider,
    {
        **{
            name: f"models.providers.{name}:PROVIDER"
            for name in ("embedded", "openai", "anthropic", "gemini", "vllm", "litellm", "local", "scripted")
        },
        "anthropic-browser": "models.providers.anthropic:BROWSER",
        "anthropic-computer": "models.providers.anthropic:COMPUTER",
        "openai-computer": "models.providers.openai:COMPUTER",
    },
    error=ModelUnavailable,
)
SERVED: Final = "openai:MODEL, anthropic:MODEL or litellm:PROVIDER/MODEL"
"""The specs that use a base URL, for messages."""
_BARE_NAMES: Final = (
    (re.compile(r"(?:openai/)?((?:gpt-\d|chatgpt-|codex-|o\d)[\w.:-]*)", re.IGNORECASE), "openai"),
    (re.compile(r"(?:anthropic/)?(claude-[\w.:-]+)", re.IGNORECASE), "anthropic"),
    (re.compile(r"(?:google/)?(gemini-[\w.:-]+)", re.IGNORECASE), "gemini"),
)
"""Names of hosted models, as users write them without a provider, with the provider's."""
_OPEN_WEIGHTS: Final = re.compile(
    r"(?:ollama[:/])?(?!ollama)((?:[\w.-]+/)?[\w.-]*"
    r"(?:qwen|llama|mistral|mixtral|gemma|phi-?\d|deepseek|smol|glm|kimi|gpt-oss|internvl|ui-tars)[\w.:-]*)",
    re.IGNORECASE,
)
"""Names of models with open weights, which several servers and folders can have."""


def parse_spec(text: str) -> ModelSpec:
    """The typed spec. Raises :class:`UnknownModel`, which lists the known forms, or :class:`ModelUnavailable`."""
    kind, colon, rest = text.strip().partition(":")
    if kind not in PROVIDERS:
        raise _unknown(text)
    provider = PROVIDERS.load(kind)
    if ":" not in provider.form:
        if colon:
            raise _unknown(text)
        return provider.parse("")
    if not rest:
        raise ModelUnavailable(f"model spec {text!r} names nothing after {kind + ':'!r}: use one of {known_forms()}")
    return provider.parse(rest)


def _unknown(text: str) -> UnknownModel:
    meant = _meant(text.strip())
    return UnknownModel(
        f"unknown model {text!r}: {f'did you mean {meant}? Else ' if meant else ''}use one of {known_forms()}"
    )


def _meant(name: str) -> str:
    """The specs that a model's *name* without a provider may stand for; empty if it is not known."""
    for pattern, provider in _BARE_NAMES:
        if match := pattern.fullmatch(name):
            return f"{provider}:{match[1]}"
    if match := _OPEN_WEIGHTS.fullmatch(name):
        return f"openai:{match[1]} with --base-url URL, vllm:URL#{match[1]}, or local:DIR with its checkpoint"
    return ""


def checkpoint_folders(text: str) -> tuple[Path, ...]:
    """:meth:`ModelSpec.checkpoint_folders` of a spec; empty for a text that is none."""
    try:
        return parse_spec(text).checkpoint_folders()
    except ModelUnavailable:
        return ()


def known_forms() -> str:
    """The forms of the built-in providers, and the names of the added ones."""
    forms = [PROVIDERS.load_builtin(name).form for name in PROVIDERS.builtin]
    return ", ".join((*forms, *PROVIDERS.names[len(forms) :]))


def make_model(
    spec: str | ModelSpec,
    *,
    base_url: str | None = None,
    policy: RetryPolicy | None = None,
    max_concurrent: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ChatModel:
    """The model of *spec*; `aclose` it when done.

    *base_url* is the server of `openai:`, `anthropic:` and `litellm:` specs. It takes precedence over OPENAI_BASE_URL,
    ANTHROPIC_BASE_URL and LiteLLM's addresses; other specs ignore it (Gemini's address is GOOGLE_GEMINI_BASE_URL).
    *max_concurrent* limits the requests in flight. Raises :class:`ModelUnavailable`, in one line, when a key, file or
    package is missing; sends nothing.
    """
    parsed = parse_spec(spec) if isinstance(spec, str) else spec
    return parsed.make(ModelOptions(base_url, policy, max_concurrent, environ))


def takes_server(spec: str) -> bool:
    """Whether the model of *spec* uses a base URL; True for a wrong spec, which :func:`make_model` reports."""
    try:
        return parse_spec(spec).base_url_protocol(ModelOptions()) != ""
    except ModelUnavailable:
        return True


def price_known(spec: str, *, base_url: str | None = None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the cost of calls of *spec* is known, or nothing is billed. Only then can a limit of cost be kept."""
    return parse_spec(spec).price_known(ModelOptions(base_url, environ=environ))


def own_temperature(spec: str) -> bool:
    """Whether the models of *spec* sample at a temperature of their own; False for a name that is no model spec."""
    try:
        return parse_spec(spec).own_temperature
    except ModelUnavailable:
        return False


def statuses(environ: Mapping[str, str] = os.environ) -> list[ModelStatus]:
    """A row for each provider: whether it works here, and what is missing if not. Uses no network."""
    return [_status(name, environ) for name in PROVIDERS.names]


def _status(name: str, environ: Mapping[str, str]) -> ModelStatus:
    try:
        return PROVIDERS.load(name).status(environ)
    except ModelUnavailable as error:
        return ModelStatus(name, usable=False, detail=str(error))
