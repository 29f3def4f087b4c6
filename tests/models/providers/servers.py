"""A real HTTP server on loopback that speaks the OpenAI, Gemini and Anthropic protocols, and misbehaves by script.

    async with misbehaving_server([Status(429, retry_after="0"), Reply("hello")]) as server:
        model = OpenAIChat("m", base_url=server.openai_url)
        ...
        assert len(server.requests) == 2

Each request takes the next act of the script; a callable decides by the request instead. When the script is used up
the server answers 418, which no client retries: a test that sends more than it says fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from aiohttp import web

from tests.timing import LoopClock

Protocol = Literal["openai", "gemini", "anthropic"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer in the requested protocol."""

    text: str = "ok"
    finish: Literal["stop", "length", "content_filter", "abort"] = "stop"
    """`abort`: the server gave up half way."""
    refusal: str | None = None
    """OpenAI's `refusal`; a blocked prompt in Gemini's protocol."""
    tokens_in: int = 100
    tokens_cached: int = 0
    tokens_out: int = 10
    tokens_thinking: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    """More keys of the first choice (`token_ids`, `logprobs`)."""
    extra_top: dict[str, Any] = field(default_factory=dict)
    """More keys of the body (`prompt_token_ids`)."""


@dataclass(frozen=True, slots=True)
class Status:
    """An error in the protocol's form."""

    status: int
    message: str = "scripted error"
    retry_after: str | None = None
    param: str | None = None
    code: str | None = None
    """OpenAI's `code`; the reason of `google.rpc.ErrorInfo` in Gemini's protocol."""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answers, not even headers."""


@dataclass(frozen=True, slots=True)
class Drip:
    """Valid headers, then one byte of white space at a time, without end."""

    every_s: float = 0.05


@dataclass(frozen=True, slots=True)
class CutOff:
    """Headers announce a complete answer, half of it is sent, then the connection closes."""


@dataclass(frozen=True, slots=True)
class Close:
    """The connection closes before any header."""


@dataclass(frozen=True, slots=True)
class Body:
    """Exactly this body."""

    text: str
    content_type: str = "application/json"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GoAway:
    """The connection closes before any header, and the port with it, until :meth:`MisbehavingServer.come_back`."""


Act = Reply | Status | Hang | Drip | CutOff | Close | Body | GoAway


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived."""

    protocol: Protocol
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    at: float
    """On the clock of the event loop."""

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


Script = Iterable[Act] | Callable[[Received], Act]


class MisbehavingServer:
    """Started by :func:`misbehaving_server`."""

    def __init__(self, script: Script, clock: LoopClock | None = None) -> None:
        """*clock*: advanced while an act hangs or drips, so that nobody waits; None lets real time pass."""
        self.requests: list[Received] = []
        self.port = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.asked = asyncio.Event()
        """Set by the first request."""
        self.stopping = asyncio.Event()
        self.gone = asyncio.Event()
        """Set while the port is closed."""
        self._clock = clock
        self._runner: web.AppRunner | None = None
        self._leaving: asyncio.Task[None] | None = None
        acts = iter(()) if callable(script) else iter(script)
        self._act: Callable[[Received], Act] = (
            script if callable(script) else lambda _: next(acts, Status(418, "the script is used up"))
        )

    async def come_back(self) -> None:
        """Listens, on the same port after the first time."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self.handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        self.gone.clear()

    async def go_away(self) -> None:
        """Closes the port and every connection."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
        self.gone.set()

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def gemini_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        protocol = protocol_of(request.path)
        headers = {name.lower(): value for name, value in request.headers.items()}
        received = Received(protocol, request.path, headers, await request.read(), asyncio.get_running_loop().time())
        self.requests.append(received)
        self.asked.set()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            refusal = _refused_by_anthropic(received)
            return await self._perform(refusal or self._act(received), received, request)
        finally:
            self.in_flight -= 1

    async def _perform(self, act: Act, received: Received, request: web.Request) -> web.StreamResponse:
        match act:
            case Reply():
                return web.json_response(answer_body(act, received.protocol))
            case Status():
                return _status(act, received.protocol)
            case Body(text, content_type, status, headers):
                return web.Response(text=text, content_type=content_type, status=status, headers=dict(headers))
            case Hang():
                await self._hang(request)
                return web.Response(status=503)
            case Drip(every_s):
                return await self._drip(request, every_s)
            case CutOff():
                return await _cut_off(request, received.protocol)
            case Close():
                _drop(request)
                return web.Response()
            case GoAway():
                _drop(request)
                self._leaving = asyncio.create_task(self.go_away())
                return web.Response()
            case _:
                assert_never(act)

    async def _hang(self, request: web.Request) -> None:
        if self._clock is None:
            await self.stopping.wait()
        else:
            await self._clock.pass_until(lambda: self.stopping.is_set() or _left(request))

    async def _pause(self, seconds: float) -> None:
        if self._clock is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), seconds)
        else:
            await self._clock.sleep(seconds)

    async def _drip(self, request: web.Request, every_s: float) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while not self.stopping.is_set() and not _left(request):
                await response.write(b" ")
                await self._pause(every_s)
        except ConnectionResetError:
            pass
        return response


@asynccontextmanager
async def misbehaving_server(script: Script, clock: LoopClock | None = None) -> AsyncGenerator[MisbehavingServer]:
    """The server on a free port of 127.0.0.1; stopped at exit."""
    server = MisbehavingServer(script, clock)
    await server.come_back()
    try:
        yield server
    finally:
        server.stopping.set()
        await server.go_away()


def protocol_of(path: str) -> Protocol:
    if path.endswith("/messages"):
        return "anthropic"
    return "gemini" if "generateContent" in path else "openai"


def answer_body(reply: Reply, protocol: Protocol) -> dict[str, Any]:
    """A complete answer in *protocol*."""
    bodies = {"openai": _openai_body, "gemini": _gemini_body, "anthropic": _anthropic_body}
    return bodies[protocol](reply)


def _anthropic_body(reply: Reply) -> dict[str, Any]:
    finish = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "abort": "pause_turn"}
    refused = {"type": "refusal", "category": None, "explanation": reply.refusal}
    thoughts = [{"type": "thinking", "thinking": "let me think", "signature": "c2ln"}] * bool(reply.tokens_thinking)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [*thoughts, {"type": "text", "text": reply.text}],
        "stop_reason": finish[reply.finish] if reply.refusal is None else "refusal",
        "stop_details": None if reply.refusal is None else refused,
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.tokens_in - reply.tokens_cached,
            "cache_read_input_tokens": reply.tokens_cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": reply.tokens_out + reply.tokens_thinking,
            "output_tokens_details": {"thinking_tokens": reply.tokens_thinking},
        },
        **reply.extra_top,
    }


def _openai_body(reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None, **reply.extra}],
        "usage": {
            "prompt_tokens": reply.tokens_in,
            "completion_tokens": reply.tokens_out + reply.tokens_thinking,
            "total_tokens": reply.tokens_in + reply.tokens_out + reply.tokens_thinking,
            "prompt_tokens_details": {"cached_tokens": reply.tokens_cached},
            "completion_tokens_details": {"reasoning_tokens": reply.tokens_thinking},
        },
        **reply.extra_top,
    }


def _gemini_body(reply: Reply) -> dict[str, Any]:
    if reply.refusal is not None:
        return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": reply.tokens_in}}
    finish = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "abort": "OTHER"}[reply.finish]
    parts: list[dict[str, Any]] = [{"text": reply.text}]
    if reply.tokens_thinking:
        parts.insert(0, {"text": "let me think", "thought": True})
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, **reply.extra}],
        "usageMetadata": {
            "promptTokenCount": reply.tokens_in,
            "cachedContentTokenCount": reply.tokens_cached,
            "candidatesTokenCount": reply.tokens_out,
            "thoughtsTokenCount": reply.tokens_thinking,
        },
        **reply.extra_top,
    }


def _status(act: Status, protocol: Protocol) -> web.Response:
    headers = dict(act.headers)
    if act.retry_after is not None:
        headers["Retry-After"] = act.retry_after
    error: dict[str, Any] = {"message": act.message, "type": "scripted", "param": act.param, "code": act.code}
    if protocol == "gemini":
        error = {"message": act.message, "code": act.status, "status": "SCRIPTED"}
        if act.code is not None:
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": act.code}]
    if protocol == "anthropic":
        error = {"type": act.code or "api_error", "message": act.message}
        return web.json_response({"type": "error", "error": error}, status=act.status, headers=headers)
    return web.json_response({"error": error}, status=act.status, headers=headers)


async def _cut_off(request: web.Request, protocol: Protocol) -> web.StreamResponse:
    whole = json.dumps(answer_body(Reply("a whole answer"), protocol)).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(whole))})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    _drop(request)
    return response


def _refused_by_anthropic(received: Received) -> Status | None:
    """The refusal of a text without content, as Anthropic answers it."""
    if received.protocol != "anthropic":
        return None
    blocks = [block for message in received.body["messages"] for block in message["content"]]
    if all(block["text"].strip() for block in blocks if block["type"] == "text"):
        return None
    return Status(400, "messages: text content blocks must be non-empty", code="invalid_request_error")


def _left(request: web.Request) -> bool:
    """True: the client has closed the connection."""
    return request.transport is None or request.transport.is_closing()


def _drop(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()
