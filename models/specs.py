"""From a model spec, as typed on the command line, to a model.

* `embedded`: the small model this package carries; needs nothing.
* `openai:MODEL`: OpenAI with OPENAI_API_KEY, or any server of its protocol (llama.cpp, Ollama, …) by a base URL.
* `vllm:URL#MODEL`: a vLLM server; token ids and log-probabilities come back. VLLM_API_KEY if it wants a key.
* `gemini:MODEL`: Google Gemini with GEMINI_API_KEY or GOOGLE_API_KEY.
* `local:DIR[+ADAPTER]`: a transformers checkpoint in a folder, with a PEFT adapter folder; or `local:FILE.gguf`.
* `scripted:FILE`: answers from a file, for tests (:mod:`models.providers.scripted`).

Nothing here touches the network, and a provider's package is imported only when its model is made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from models.base import ChatModel, ModelStatus, ModelUnavailable, UnknownModel
from models.embedded import embedded_dir
from models.optional import LOCAL_PACKAGES, install_command, missing_modules
from models.prices import own_prices, price_table
from models.transport import RetryPolicy

OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_URL = "OPENAI_BASE_URL"
VLLM_KEY = "VLLM_API_KEY"
GEMINI_URL = "GOOGLE_GEMINI_BASE_URL"
GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")

FORMS = "embedded, openai:MODEL, gemini:MODEL, vllm:URL#MODEL, local:DIR[+ADAPTER], scripted:FILE"


@dataclass(frozen=True, slots=True)
class OpenAISpec:
    model: str

    def __str__(self) -> str:
        return f"openai:{self.model}"


@dataclass(frozen=True, slots=True)
class GeminiSpec:
    model: str

    def __str__(self) -> str:
        return f"gemini:{self.model}"


@dataclass(frozen=True, slots=True)
class VllmSpec:
    url: str
    """With the `/v1` of its API."""
    model: str

    def __str__(self) -> str:
        return f"vllm:{self.url}#{self.model}"


@dataclass(frozen=True, slots=True)
class LocalSpec:
    folder: Path
    """A checkpoint's, or a GGUF file."""
    adapter: Path | None = None

    def __str__(self) -> str:
        return f"local:{self.folder}" + (f"+{self.adapter}" if self.adapter else "")


@dataclass(frozen=True, slots=True)
class EmbeddedSpec:
    def __str__(self) -> str:
        return "embedded"


@dataclass(frozen=True, slots=True)
class ScriptedSpec:
    file: Path

    def __str__(self) -> str:
        return f"scripted:{self.file}"


Spec = OpenAISpec | GeminiSpec | VllmSpec | LocalSpec | EmbeddedSpec | ScriptedSpec


def parse_spec(text: str) -> Spec:
    """The typed spec; raises :class:`ModelUnavailable` that says which forms there are.

    In `local:` the part after the last `+` is the adapter, unless the whole is an existing folder or file.
    """
    kind, colon, rest = text.strip().partition(":")
    if kind == "embedded" and not colon:
        return EmbeddedSpec()
    if kind not in ("openai", "gemini", "vllm", "local", "scripted"):
        raise UnknownModel(f"unknown model {text!r}: use one of {FORMS}")
    if not rest:
        raise ModelUnavailable(f"model spec {text!r} names nothing after {kind + ':'!r}: use one of {FORMS}")
    match kind:
        case "openai":
            return OpenAISpec(rest)
        case "gemini":
            return GeminiSpec(rest)
        case "vllm":
            return _vllm(text, rest)
        case "local":
            return _local(rest)
        case _:
            return ScriptedSpec(_path(rest))


def make_model(
    spec: str | Spec,
    *,
    base_url: str | None = None,
    policy: RetryPolicy | None = None,
    max_concurrent: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ChatModel:
    """The model of *spec*, ready to be asked; `aclose` it when done.

    *base_url* is for `openai:` alone and goes before OPENAI_BASE_URL, so that one run can ask a local server and
    Gemini (whose address is GOOGLE_GEMINI_BASE_URL). *max_concurrent* limits the requests in flight. Raises
    :class:`ModelUnavailable`, in one line, when a key, file or package is missing; the network is not tried.
    """
    parsed = parse_spec(spec) if isinstance(spec, str) else spec
    match parsed:
        case OpenAISpec(model):
            return _make_openai(model, base_url, policy, max_concurrent, environ)
        case VllmSpec(url, model):
            from models.providers.openai_chat import OpenAIChat
            from models.providers.openai_dialect import Dialect

            return OpenAIChat(
                model,
                spec=str(parsed),
                api_key=environ.get(VLLM_KEY),
                base_url=url,
                dialect=Dialect.of_vllm(model),
                policy=policy,
                max_concurrent=max_concurrent,
            )
        case GeminiSpec(model):
            return _make_gemini(model, policy, max_concurrent, environ)
        case LocalSpec(folder, adapter):
            return _make_local(folder, adapter, str(parsed))
        case EmbeddedSpec():
            from models.providers.local import embedded

            return embedded()
        case ScriptedSpec(file):
            from models.providers.scripted import ScriptedModel

            return ScriptedModel.from_file(file, spec=str(parsed))
        case _:
            assert_never(parsed)


def price_known(spec: str, *, base_url: str | None = None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether calls of *spec* have a price, or cost nothing that anybody bills: then a limit of cost holds."""
    match parse_spec(spec):
        case OpenAISpec(model):
            hosted = not (base_url or environ.get(OPENAI_URL))
            return (hosted or own_prices()) and price_table().knows(model)
        case GeminiSpec(model):
            return price_table().knows(model)
        case _:
            return True


def statuses(environ: Mapping[str, str] = os.environ) -> list[ModelStatus]:
    """One row for each kind of spec: whether it works here, and what is missing where not. No network."""
    return [
        _embedded_status(),
        _local_status(),
        _openai_status(environ),
        _gemini_status(environ),
        ModelStatus(
            "vllm:URL#MODEL",
            usable=True,
            detail=f"needs a running vLLM server ({VLLM_KEY} if it wants a key)",
            examples=("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-4B",),
        ),
        ModelStatus(
            "scripted:FILE", usable=True, detail="answers from a file, for tests", examples=("scripted:a.jsonl",)
        ),
    ]


def _vllm(text: str, rest: str) -> VllmSpec:
    url, _, model = rest.partition("#")
    if not model:
        raise ModelUnavailable(
            f"model spec {text!r} is not vllm:URL#MODEL, as in vllm:http://127.0.0.1:8000/v1#my-model"
        )
    _checked_url(url)
    return VllmSpec(url.rstrip("/") + ("" if urlsplit(url).path.strip("/") else "/v1"), model)


def _checked_url(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ModelUnavailable(f"base URL {url!r} is not of the form http(s)://HOST[:PORT]/PATH")
    return url


def _path(text: str) -> Path:
    """With `~` as a shell reads it."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises for a name of no user


def _local(rest: str) -> LocalSpec:
    whole = _path(rest)
    folder, plus, adapter = rest.rpartition("+")
    if not plus or not folder or not adapter or whole.exists():
        return LocalSpec(whole)
    return LocalSpec(_path(folder), _path(adapter))


def _make_openai(
    model: str,
    base_url: str | None,
    policy: RetryPolicy | None,
    max_concurrent: int | None,
    environ: Mapping[str, str],
) -> ChatModel:
    url = _checked_url(base_url or environ.get(OPENAI_URL) or None)
    key = environ.get(OPENAI_KEY) or None
    if key is None and url is None:
        raise ModelUnavailable(
            f"openai:{model} needs a key: set {OPENAI_KEY}, or give the base URL of a server that needs none"
        )
    from models.providers.openai_chat import OpenAIChat

    return OpenAIChat(model, api_key=key, base_url=url, policy=policy, max_concurrent=max_concurrent)


def _make_gemini(
    model: str, policy: RetryPolicy | None, max_concurrent: int | None, environ: Mapping[str, str]
) -> ChatModel:
    key = _gemini_key(environ)
    if key is None:
        raise ModelUnavailable(f"gemini:{model} needs a key: set {' or '.join(GEMINI_KEYS)}")
    url = _checked_url(environ.get(GEMINI_URL) or None)
    from models.providers.gemini import GeminiChat

    return GeminiChat(model, api_key=key, base_url=url, policy=policy, max_concurrent=max_concurrent)


def _make_local(folder: Path, adapter: Path | None, spec: str) -> ChatModel:
    from models.local.gguf_copies import gguf_file

    if adapter is not None and not adapter.is_dir():
        raise ModelUnavailable(f"{spec}: no folder {str(adapter)!r}")
    if not folder.exists():
        raise ModelUnavailable(f"{spec}: no folder {str(folder)!r}")
    if not (folder / "config.json").is_file() and gguf_file(folder) is None:
        what = "is a file, and no .gguf" if folder.is_file() else "holds no config.json"
        raise ModelUnavailable(f"{spec}: {str(folder)!r} {what}, so it is no transformers checkpoint")
    from models.providers.local import LocalModel

    return LocalModel.load(folder, adapter=adapter, spec=spec)


def _gemini_key(environ: Mapping[str, str]) -> str | None:
    return next((environ[name] for name in GEMINI_KEYS if environ.get(name)), None)


def _embedded_status() -> ModelStatus:
    if not (embedded_dir() / "config.json").is_file():
        detail = f"no checkpoint in {str(embedded_dir())!r}: make it with python -m training.embedded"
        return ModelStatus("embedded", usable=False, detail=detail, examples=("embedded",))
    detail = "the small model that ships with this package"
    return ModelStatus("embedded", usable=True, detail=detail, examples=("embedded",))


def _local_status() -> ModelStatus:
    missing = missing_modules(*LOCAL_PACKAGES)
    detail = "any transformers checkpoint folder, or a GGUF file"
    if missing:
        detail = f"needs {', '.join(missing)}: {install_command('local')}"
    examples = ("local:checkpoints/my-policy", "local:qwen2.5-0.5b-q4_k_m.gguf")
    return ModelStatus("local:DIR[+ADAPTER]", usable=not missing, detail=detail, examples=examples)


def _openai_status(environ: Mapping[str, str]) -> ModelStatus:
    examples = ("openai:gpt-4o", "openai:llama3.2 with --base-url http://127.0.0.1:11434/v1")
    if environ.get(OPENAI_KEY):
        return ModelStatus("openai:MODEL", usable=True, detail=f"{OPENAI_KEY} is set", examples=examples)
    if environ.get(OPENAI_URL):
        return ModelStatus("openai:MODEL", usable=True, detail=f"{OPENAI_URL} is set, no key", examples=examples)
    detail = f"set {OPENAI_KEY}, or give --base-url of a server of its protocol (vLLM, llama.cpp, Ollama)"
    return ModelStatus("openai:MODEL", usable=False, detail=detail, examples=examples)


def _gemini_status(environ: Mapping[str, str]) -> ModelStatus:
    examples = ("gemini:gemini-2.5-pro", "gemini:gemini-2.5-flash")
    name = next((name for name in GEMINI_KEYS if environ.get(name)), None)
    detail = f"{name} is set" if name else f"set {' or '.join(GEMINI_KEYS)}"
    return ModelStatus("gemini:MODEL", usable=name is not None, detail=detail, examples=examples)
