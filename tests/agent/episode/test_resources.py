"""Secrets and files for upload in the policy's prompt."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.episode.policy import ModelPolicy
from agent.episode.prompts import FILES, compact_text, render_policy_prompt
from agent.episode.resources import Provided
from agent.run.runner import resume, run_open
from envs.core.action_languages import PROGRAM
from models.base import ChatRequest
from models.providers.scripted_model import ScriptedModel
from tests.agent.episode.test_prompts import VIEW
from tests.agent.shop import TICKING, Shop, config

PROVIDED = Provided((("PASSWORD", "http://shop.example"), ("PIN", "*.pay.example")), ("cv.pdf", 'a "b".txt', "x/y\nz"))


def full(provided: Provided, goal: str = "Log in") -> tuple[str, str]:
    system, user = render_policy_prompt("full", replace(VIEW, provided=provided, instruction=goal))
    return system.text, user.text


def test_secrets_and_files_end_the_static_part() -> None:
    bare, user = full(Provided())
    prompt, same_user = full(PROVIDED)
    assert prompt.startswith(bare), "what all runs share comes first, for a server's prefix cache"
    assert prompt == full(PROVIDED, "Something else")[0]
    assert same_user == user
    lines = prompt.removeprefix(bare).strip().splitlines()
    assert [line for line in lines if line.startswith("- ")] == [
        "- <secret>PASSWORD</secret> at http://shop.example",
        "- <secret>PIN</secret> at *.pay.example",
        '- "cv.pdf"',
        '- "a \\"b\\".txt"',
        '- "x/y\\nz"',
    ]


def test_a_run_that_provides_nothing_does_not_speak_of_it() -> None:
    assert "secret" not in full(Provided())[0].lower() and "Files" not in full(Provided())[0]


def test_many_files_are_counted_beyond_a_bound() -> None:
    prompt, _ = full(Provided((), tuple(f"{number}.csv" for number in range(FILES + 7))))
    assert prompt.count('.csv"') == FILES and prompt.endswith("\n- and 7 more")


def test_the_compact_prompt_stays_as_small_models_are_trained_on_it() -> None:
    assert compact_text(replace(VIEW, provided=PROVIDED)) == compact_text(VIEW)


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_every_prompt_of_a_run_names_them_also_after_a_resume(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symptom: the prompt did not list secrets and files, so the policy had to guess their names."""
    shop.front = TICKING
    monkeypatch.setenv("SHOP_PW", "tulip-4711")
    files = tmp_path / "files"
    (files / "more").mkdir(parents=True)
    for name in ("cv.pdf", "more/photo.png", "tulip-4711.txt", ".hidden"):
        (files / name).write_text("x", encoding="utf-8")
    prompts: list[str] = []

    async def answer(request: ChatRequest) -> str:
        prompts.append(request.messages[0].text)
        if len(prompts) == 2:
            running.cancel()
            await asyncio.Event().wait()
        return "exit()" if len(prompts) == 3 else 'do(action="Wait")'

    policy = ModelPolicy(ScriptedModel(answer), PROGRAM, "full")
    settings = config(secrets=("PASSWORD=env:SHOP_PW",), session={"upload_folder": files})
    running = asyncio.ensure_future(run_open(settings, "Log in", shop.url, tmp_path, run_id="r", policy=policy))
    with pytest.raises(asyncio.CancelledError):
        await running
    await resume(tmp_path / "r", policy=policy)
    assert len(prompts) == 3 and len(set(prompts)) == 1
    origin = shop.url.rstrip("/")
    assert f"- <secret>PASSWORD</secret> at {origin}" in prompts[0]
    assert [line for line in prompts[0].splitlines() if line.startswith('- "')] == ['- "cv.pdf"', '- "more/photo.png"']
    assert "tulip" not in json.dumps(prompts)
