"""A model that answers from a script, for tests and demonstrations: `scripted:FILE`.

A script is a list of answers in order, or an async function of the request. A `.jsonl` file has one entry a line; any
other file is one JSON list (docs/howto/models.md has an example). An entry is

* a string: the answer's text,
* `{"when": TEXT, "answer": ENTRY}`: a rule for every request whose messages contain TEXT. Rules come before the
  list and can be used any number of times, which a list cannot with many workers or after a resume,
* any other JSON value: the answer is its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from models.base import ChatReply, ChatRequest, ModelError, ModelUnavailable, Usage
from models.structured import Draft, checked_reply
from models.transport import Call, RetryPolicy, open_call

Answer = str | ModelError | ChatReply
"""A text, an error to raise, or a complete reply with usage and token ids."""
Script = Iterable[Answer] | Callable[[ChatRequest], Awaitable[Answer]]

FREE = Usage(cost_usd=0.0)


@dataclass(frozen=True, slots=True)
class Rule:
    when: str
    answer: str


class ScriptedModel:
    """A :class:`models.base.ChatModel`. Schema, repair and deadline work as with a server."""

    def __init__(self, script: Script, *, rules: Iterable[Rule] = (), spec: str = "scripted:python") -> None:
        self.spec = spec
        self.requests: list[ChatRequest] = []
        """All requests, including repairs, oldest first."""
        self._rules = tuple(rules)
        self._answer = script if callable(script) else _in_order(script, spec)

    @classmethod
    def from_file(cls, path: Path, *, spec: str | None = None) -> ScriptedModel:
        """Reads a script. Raises :class:`ModelUnavailable` if the file is missing or is no script."""
        entries = _entries(path)
        rules = [Rule(str(entry["when"]), _text(entry["answer"])) for entry in entries if _is_rule(entry)]
        answers = [_text(entry) for entry in entries if not _is_rule(entry)]
        return cls(answers, rules=rules, spec=spec or f"scripted:{path}")

    async def complete(self, request: ChatRequest) -> ChatReply:
        async with open_call(request.deadline_s, RetryPolicy()) as call:

            async def ask(sent: ChatRequest) -> Draft:
                call.attempts += 1
                self.requests.append(sent)
                return await self._draft(sent, call)

            return await checked_reply(request, ask, call, self.spec)

    async def aclose(self) -> None:
        """Does nothing."""

    async def _draft(self, request: ChatRequest, call: Call) -> Draft:
        rule = next((rule for rule in self._rules if any(rule.when in m.text for m in request.messages)), None)
        answer = rule.answer if rule else await self._answer(request)
        if isinstance(answer, ModelError):
            raise answer
        if isinstance(answer, str):
            call.charge(FREE)
            return Draft(answer)
        call.charge(answer.usage)
        return Draft(answer.text, answer.prompt_token_ids, answer.completion_token_ids, answer.logprobs)


def _in_order(answers: Iterable[Answer], spec: str) -> Callable[[ChatRequest], Awaitable[Answer]]:
    script = tuple(answers)
    remaining = iter(script)

    async def answer(_request: ChatRequest) -> Answer:
        following = next(remaining, None)
        if following is None:
            raise ModelUnavailable(f"{spec} has only {len(script)} answers, and one more was requested: add answers")
        return following

    return answer


def _entries(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
        entries = (
            [json.loads(line) for line in text.split("\n") if line.strip()]  # a text may hold other ends of lines
            if path.suffix == ".jsonl"
            else json.loads(text)
        )
    except OSError as error:
        raise ModelUnavailable(f"script {str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ModelUnavailable(f"script {str(path)!r} is not JSON: {error}") from None
    if not isinstance(entries, list):
        raise ModelUnavailable(
            f"script {str(path)!r} must be a JSON list of answers, or one answer a line in a .jsonl file"
        )
    return cast("list[Any]", entries)


def _is_rule(entry: Any) -> bool:
    return isinstance(entry, dict) and set(cast("dict[str, Any]", entry)) == {"when", "answer"}


def _text(entry: Any) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
