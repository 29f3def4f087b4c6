"""`vllm:URL#MODEL`: a vLLM server, which returns token ids and log-probabilities. VLLM_API_KEY if it needs a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from models.base import ChatModel, ModelStatus, ModelUnavailable
from models.provider import ModelOptions, ModelSpec, Provider, checked_url, served_folders

VLLM_KEY = "VLLM_API_KEY"
FORM = "vllm:URL#MODEL"


@dataclass(frozen=True, slots=True)
class VllmSpec(ModelSpec):
    url: str
    """With the `/v1` of its API."""
    model: str

    def __str__(self) -> str:
        return f"vllm:{self.url}#{self.model}"

    def make(self, options: ModelOptions) -> ChatModel:
        from models.providers.openai_chat import OpenAIChat
        from models.providers.openai_dialect import Dialect

        return OpenAIChat(
            self.model,
            spec=str(self),
            api_key=options.environ.get(VLLM_KEY),
            base_url=self.url,
            dialect=Dialect.of_vllm(self.model),
            policy=options.policy,
            max_concurrent=options.max_concurrent,
        )

    def checkpoint_folders(self) -> tuple[Path, ...]:
        return served_folders(self.model)

    def takes_grammars(self, options: ModelOptions) -> bool:
        """Not for a model that always thinks: a grammar would limit its thoughts."""
        from models.providers.openai_dialect import Dialect

        return not Dialect.of_vllm(self.model).reasoning

    def price_known(self, options: ModelOptions) -> bool:
        return True


def _parse(rest: str) -> VllmSpec:
    url, _, model = rest.partition("#")
    if not model:
        example = "vllm:http://127.0.0.1:8000/v1#my-model"
        raise ModelUnavailable(f"model spec {'vllm:' + rest!r} is not {FORM}, as in {example}")
    checked_url(url)
    return VllmSpec(url.rstrip("/") + ("" if urlsplit(url).path.strip("/") else "/v1"), model)


def _status(environ: Mapping[str, str]) -> ModelStatus:
    detail = f"needs a running vLLM server ({VLLM_KEY} if it needs a key)"
    return ModelStatus(FORM, usable=True, detail=detail, examples=("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-4B",))


PROVIDER = Provider(FORM, _parse, _status)
