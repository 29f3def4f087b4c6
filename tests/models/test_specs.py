from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.base import ChatRequest, Message, ModelUnavailable, UnknownModel
from models.provider import ModelSpec
from models.providers.embedded import EmbeddedSpec
from models.providers.gemini import GeminiSpec
from models.providers.litellm import LiteLLMSpec
from models.providers.local import LocalSpec
from models.providers.openai import OpenAISpec
from models.providers.scripted import ScriptedSpec
from models.providers.vllm import VllmSpec
from models.specs import make_model, parse_spec, statuses
from tests.models.providers.servers import Reply, misbehaving_server

VLLM = VllmSpec("http://127.0.0.1:8000/v1", "Qwen/Qwen3-4B")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("embedded", EmbeddedSpec()),
        (" embedded ", EmbeddedSpec()),
        ("openai:gpt-4o", OpenAISpec("gpt-4o")),
        ("openai:llama3.2:3b", OpenAISpec("llama3.2:3b")),
        ("gemini:gemini-2.5-pro", GeminiSpec("gemini-2.5-pro")),
        ("vllm:http://127.0.0.1:8000#Qwen/Qwen3-4B", VLLM),
        ("vllm:http://127.0.0.1:8000/v1/#Qwen/Qwen3-4B", VLLM),
        ("vllm:https://host/prefix/v1#m", VllmSpec("https://host/prefix/v1", "m")),
        ("litellm:mistral/mistral-large-latest", LiteLLMSpec("mistral", "mistral-large-latest")),
        ("litellm:openrouter/qwen/qwen3-vl", LiteLLMSpec("openrouter", "qwen/qwen3-vl")),
        ("local:/no/such/model", LocalSpec(Path("/no/such/model"))),
        ("local:/no/such/model+/my/adapter", LocalSpec(Path("/no/such/model"), Path("/my/adapter"))),
        ("scripted:answers.jsonl", ScriptedSpec(Path("answers.jsonl"))),
    ],
)
def test_specs_parse_and_print(text: str, spec: ModelSpec) -> None:
    assert parse_spec(text) == spec
    assert parse_spec(str(spec)) == spec


def test_a_folder_with_a_plus_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "c++"
    folder.mkdir()
    assert parse_spec(f"local:{folder}") == LocalSpec(folder)
    assert parse_spec(f"local:{folder}+lora") == LocalSpec(folder, Path("lora"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "unknown model ''"),
        ("gpt-4o", "unknown model 'gpt-4o'"),
        ("another:x", "use one of embedded, openai:MODEL"),
        ("embedded:small", "unknown model"),
        ("openai:", "names nothing after 'openai:'"),
        ("litellm:mistral", "is not litellm:PROVIDER/MODEL"),
        ("litellm:/m", "is not litellm:PROVIDER/MODEL"),
        ("vllm:localhost#m", "base URL 'localhost'"),
        ("vllm:http://host:8000", "vllm:URL#MODEL"),
        ("vllm:http://host:99999#m", "base URL"),
        ("vllm:http://#m", "base URL"),
    ],
)
def test_errors_of_wrong_specs_name_the_valid_forms(text: str, says: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        parse_spec(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("o3-mini", "openai:o3-mini"),
        ("o1", "openai:o1"),
        ("chatgpt-4o-latest", "openai:chatgpt-4o-latest"),
        ("openai/gpt-5.4", "openai:gpt-5.4"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.5-pro", "gemini:gemini-2.5-pro"),
    ],
)
def test_the_spec_of_a_bare_name_is_suggested(name: str, meant: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_spec(name)
    assert str(caught.value).startswith(
        f"unknown model {name!r}: did you mean {meant}? Else use one of embedded, openai:"
    )
    assert str(parse_spec(meant)) == meant


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("qwen2.5:7b", "qwen2.5:7b"),
        ("Qwen/Qwen3-4B", "Qwen/Qwen3-4B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("gpt-oss:20b", "gpt-oss:20b"),
        ("ollama:llama3.2", "llama3.2"),
    ],
)
def test_the_ways_to_a_model_with_open_weights_are_suggested(name: str, model: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_spec(name)
    ways = f"did you mean openai:{model} with --base-url URL, vllm:URL#{model}, or local:DIR with its checkpoint? Else"
    assert str(caught.value).startswith(f"unknown model {name!r}: {ways} use one of embedded")


@pytest.mark.parametrize("name", ["my-model", "oracle:x", "ollama", "claude", "gpt-4o\nx", "Qwen/Qwen3 4B"])
def test_no_spec_is_suggested_for_other_names(name: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        parse_spec(name)
    assert str(caught.value).startswith(f"unknown model {name!r}: use one of embedded")


@given(
    st.text(max_size=60) | st.sampled_from(["vllm:", "local:", "openai:"]).flatmap(lambda k: st.text().map(k.__add__))
)
@example("local:~no-such-user/model+lora")
def test_any_text_is_a_spec_or_one_line(text: str) -> None:
    try:
        parse_spec(text)
    except ModelUnavailable as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("spec", "base_url", "says"),
    [
        ("openai:gpt-4o", None, "set OPENAI_API_KEY"),
        ("gemini:gemini-2.5-pro", None, "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("openai:m", "127.0.0.1:8000", "base URL '127.0.0.1:8000'"),
        ("local:/no/such/model", None, "no folder '/no/such/model'"),
        ("scripted:/no/such/file.json", None, "'/no/such/file.json' cannot be read"),
    ],
)
def test_errors_name_what_is_missing(spec: str, base_url: str | None, says: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        make_model(spec, base_url=base_url, environ={})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-7", "claude-3-5-haiku-latest"])
def test_the_browser_tools_need_a_model_that_has_them(model: str) -> None:
    environ = {"ANTHROPIC_API_KEY": "k"}
    with pytest.raises(
        ModelUnavailable, match=f"^anthropic-browser:{model}: .* needs Claude Opus 4.8 or later"
    ) as caught:
        make_model(f"anthropic-browser:{model}", environ=environ)
    assert "\n" not in str(caught.value)
    for spec in (f"anthropic-computer:{model}", "anthropic-browser:claude-opus-4-8", "anthropic-browser:my-claude"):
        assert make_model(spec, environ=environ).spec == spec


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        del name

    monkeypatch.setattr("models.optional.find_spec", find_nothing)
    with pytest.raises(
        ModelUnavailable, match=r"^litellm:mistral/m needs litellm: pip install '\.\[litellm\]' in the clone of Mira$"
    ):
        make_model("litellm:mistral/m", environ={})
    row = next(row for row in statuses({}) if row.spec == "litellm:PROVIDER/MODEL")
    assert not row.usable and "'.[litellm]'" in row.detail


def test_a_folder_without_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"no config\.json"):
        make_model(f"local:{tmp_path}", environ={})
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="no folder 'nowhere'"):
        make_model(f"local:{tmp_path}+nowhere", environ={})


async def test_each_provider_has_its_own_address() -> None:
    """A base URL for a local `openai:` server must not redirect the planner's Gemini calls."""
    async with misbehaving_server(lambda received: Reply(received.protocol)) as server:
        environ = {"GEMINI_API_KEY": "key-of-a-test", "GOOGLE_GEMINI_BASE_URL": server.gemini_url}
        local = make_model("openai:llama", base_url=server.openai_url, environ=environ)
        gemini = make_model("gemini:gemini-2.5-flash", base_url="http://127.0.0.1:1/v1", environ=environ)
        for model, protocol in ((local, "openai"), (gemini, "gemini")):
            assert (await model.complete(ChatRequest((Message("user", "hi"),), deadline_s=10))).text == protocol
            await model.aclose()


async def test_made_models_know_their_spec(tmp_path: Path) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(["hello"]))
    cases: list[tuple[str, dict[str, str]]] = [
        ("openai:gpt-4o", {"OPENAI_API_KEY": "sk-1234"}),
        ("openai:llama", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}),
        ("gemini:gemini-2.5-pro", {"GOOGLE_API_KEY": "AIza1234"}),
        ("vllm:http://127.0.0.1:1/v1#m", {}),
        (f"scripted:{script}", {}),
    ]
    for text, environ in cases:
        model = make_model(text, environ=environ)
        assert model.spec == text
        await model.aclose()


def test_statuses_name_what_is_missing() -> None:
    bare = {row.spec: row for row in statuses({})}
    assert not bare["openai:MODEL"].usable
    assert "OPENAI_API_KEY" in bare["openai:MODEL"].detail
    assert not bare["gemini:MODEL"].usable
    assert "GEMINI_API_KEY" in bare["gemini:MODEL"].detail
    keyed = {row.spec: row for row in statuses({"OPENAI_API_KEY": "secret-1", "GEMINI_API_KEY": "secret-2"})}
    assert keyed["openai:MODEL"].usable
    assert keyed["gemini:MODEL"].usable
    assert "secret" not in repr(keyed)
    assert set(bare) == set(keyed)


def test_parsing_a_spec_loads_no_heavy_package() -> None:
    program = """
import sys
import models.specs
models.specs.statuses({})
print(*{"openai", "google.genai", "litellm", "torch", "transformers", "httpx2"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
