"""The embedded model: it loads, answers fast, and copies unseen names."""

from __future__ import annotations

import asyncio
import time

import pytest

from envs.core.action_languages import PROGRAM
from envs.core.actions import Click, Type
from models.base import ChatReply, ChatRequest, Message
from models.providers.local_chat import LocalModel, embedded
from tests.timing import slowdown

LOGIN = """Goal: Enter the username "{user}" and the password "{secret}" into the text fields and press login.
Page:
Username  [1] textbox "username"
Password  [2] textbox "password" password
[3] button "Login\""""
MAX_STEP_S = 0.5
"""Bound for two cores; the fastest of several runs counts, because tests share the cores."""


@pytest.fixture(scope="module")
def model() -> LocalModel:
    return embedded()


async def ask(model: LocalModel, prompt: str) -> ChatReply:
    return await model.complete(ChatRequest((Message("user", prompt),), logprobs=True))


@pytest.mark.parametrize("user", ["sergio", "brumkit", "lotaire", "wexa"])
async def test_it_copies_unseen_names(model: LocalModel, user: str) -> None:
    reply = await ask(model, LOGIN.format(user=user, secret="x4F"))
    assert PROGRAM.parse(reply.text).action == Type(ref=1, text=user)
    assert len(reply.completion_token_ids or ()) == len(reply.logprobs or ())


@pytest.mark.parametrize(("wanted", "ref"), [("Save", 1), ("Delete", 2), ("Send", 3)])
async def test_it_distinguishes_similar_buttons(model: LocalModel, wanted: str, ref: int) -> None:
    page = '[1] button "Save"\n[2] button "Delete"\n[3] button "Send"'
    reply = await ask(model, f'Goal: Click on the "{wanted}" button.\nPage:\n{page}')
    assert PROGRAM.parse(reply.text).action == Click(ref=ref)


async def test_a_batch_gives_the_same_answers_as_single_requests(model: LocalModel) -> None:
    prompts = [LOGIN.format(user=user, secret="q") for user in ("ann", "bartholomew", "x1")]
    single = [(await ask(model, prompt)).text for prompt in prompts]
    together = await asyncio.gather(*(ask(model, prompt) for prompt in prompts))
    assert [reply.text for reply in together] == single


async def test_a_step_is_fast(model: LocalModel) -> None:
    prompt = LOGIN.format(user="sergio", secret="x4F") + "\nlorem ipsum dolor sit amet" * 20
    times: list[float] = []
    for _ in range(5):
        begun = time.perf_counter()
        await ask(model, prompt)
        times.append(time.perf_counter() - begun)
    assert min(times) < MAX_STEP_S * slowdown()
