from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from models.base import ModelUnavailable, Usage
from models.prices import price_table
from models.providers.anthropic_wire import WireUsage as AnthropicUsage
from models.providers.openai_wire import WireUsage as OpenAIUsage
from models.specs import make_model, price_known

USAGE = Usage(tokens_in=1_000_000, tokens_cached=400_000, tokens_thinking=100_000, tokens_out=200_000)


def test_cost_of_a_call_computed_by_hand() -> None:
    # gpt-4o: 0.6 M fresh · 2.50 + 0.4 M cached · 1.25 + 0.3 M out · 10.00
    assert price_table().cost_usd("gpt-4o", USAGE) == pytest.approx(1.50 + 0.50 + 3.00)


def test_a_long_prompt_is_billed_at_the_long_rates() -> None:
    # gemini-2.5-pro above 200,000 tokens: 0.6 · 2.50 + 0.4 · 0.25 + 0.3 · 15.00
    assert price_table().cost_usd("gemini-2.5-pro", USAGE) == pytest.approx(1.50 + 0.10 + 4.50)
    short = Usage(tokens_in=200_000)
    assert price_table().cost_usd("gemini-2.5-pro", short) == pytest.approx(0.2 * 1.25)


@pytest.mark.parametrize(
    "model", ["gpt-4o-2024-08-06", "gemini-2.5-flash-001", "gpt-4.1-mini-latest", "gemini-3.1-pro-preview"]
)
def test_a_dated_name_costs_what_its_family_costs(model: str) -> None:
    assert price_table().cost_usd(model, USAGE) is not None


def test_which_prices_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def known(spec: str, base_url: str | None = None) -> bool:
        return price_known(spec, base_url=base_url, environ={})

    assert known("openai:gpt-4o") and known("gemini:gemini-2.5-flash") and known("embedded")
    assert known("vllm:http://127.0.0.1:8000#m"), "a server of one's own sends no bill"
    assert not known("openai:gpt-9") and not known("gemini:gemini-9")
    assert not known("openai:gpt-4o", "http://shop.example/v1"), "somebody else's price for the same name"
    table = {"as_of": "2026-01-01", "models": {"m": {"input": 1, "cached": 1, "output": 1}}}
    (tmp_path / "prices.json").write_text(json.dumps(table))
    monkeypatch.setenv("MIRA_PRICES", str(tmp_path / "prices.json"))
    assert known("openai:m", "http://shop.example/v1") and not known("openai:gpt-4o")


OWN = {
    "openai:gpt-4o": ("OPENAI", "https://api.openai.com/v1", "http://api.openai.com.shop.example/v1"),
    "anthropic:claude-sonnet-4-5": ("ANTHROPIC", "https://api.anthropic.com", "http://api.anthropic.com.shop.example"),
}


@pytest.mark.parametrize("spec", OWN)
async def test_the_vendors_own_address_in_the_environment_has_the_vendors_prices(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symptom: with OPENAI_BASE_URL=https://api.openai.com/v1 a limit of cost was refused."""
    vendor, own, other = OWN[spec]
    for address, priced in ((own, True), (other, False)):
        monkeypatch.setenv(f"{vendor}_BASE_URL", address)
        assert price_known(spec, environ=os.environ) is priced
        chat: Any = make_model(spec, environ={**os.environ, f"{vendor}_API_KEY": "sk-test"})
        wire = OpenAIUsage(prompt_tokens=10) if vendor == "OPENAI" else AnthropicUsage(input_tokens=10)
        assert (chat._usage(wire).cost_usd is not None) is priced
        await chat.aclose()
    with pytest.raises(ModelUnavailable, match="needs a key"):
        make_model(spec, environ={f"{vendor}_BASE_URL": own})


@pytest.mark.parametrize("model", ["", "gpt-9", "gpt-4o-turbo", "my/gpt-4o", "o3-pro", "gpt-5-chat"])
def test_an_unknown_model_is_none_and_never_free(model: str) -> None:
    assert price_table().cost_usd(model, USAGE) is None


def test_the_table_is_dated_and_cached_tokens_are_never_dearer() -> None:
    table = price_table()
    assert table.as_of.year >= 2025
    assert "list prices" in table.note.lower()
    assert all(0 < price.cached <= price.input <= price.output for price in table.models.values())


def test_a_file_replaces_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"as_of": "2030-01-01", "models": {"mine": {"input": 1, "cached": 1, "output": 1}}}))
    monkeypatch.setenv("MIRA_PRICES", str(file))
    assert price_table().cost_usd("mine", Usage(tokens_in=1_000_000)) == 1.0
    assert price_table().cost_usd("gpt-4o", USAGE) is None


@pytest.mark.parametrize(
    "text", ["{", '{"as_of": "x", "models": {}}', '{"as_of": "2030-01-01", "models": {"m": {"input": -1}}}']
)
def test_a_broken_file_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    monkeypatch.setenv("MIRA_PRICES", str(file))
    with pytest.raises(ModelUnavailable, match="MIRA_PRICES"):
        make_model("openai:gpt-4o", environ={"OPENAI_API_KEY": "sk-test"})
