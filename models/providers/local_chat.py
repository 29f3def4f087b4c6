"""Chat models in this process: `local:DIR[+ADAPTER]` through transformers, and `embedded`.

* Concurrent requests are batched continuously, in one worker thread, so the event loop is never blocked: a request
  joins those in progress at their next token.
* Replies have the token ids of prompt and completion, and the logprob of each completion token, for training.
* :mod:`models.prompting.prompt_tokens` encodes prompts: the middle of one that is too long is removed and counted, and
  no text of a message becomes a special token.

torch is imported when the first checkpoint is loaded, and never for `embedded`, which runs on ONNX Runtime
(:mod:`models.local.embedded_onnx`).

A vision-language checkpoint takes pictures, and answers its requests one after the other
(:mod:`models.local.vision_generation`). Others refuse them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import sys
import time
from collections.abc import Generator as Generates
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from models.base import (
    ChatReply,
    ChatRequest,
    Message,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelTruncated,
    ModelUnavailable,
    SampledTokens,
    Usage,
)
from models.embedded import embedded_dir
from models.local.continuation import Job, Row, TextGenerator
from models.local.gguf_copies import gguf_file
from models.optional import LOCAL_PACKAGES, require
from models.prompting.prompt_tokens import PromptTokens, prompt_room
from models.structured import Draft, checked_reply
from models.thinking import without_thoughts
from models.transport import Call, RetryPolicy, open_call

if TYPE_CHECKING:
    from models.local.vision_prompts import VisionPrompts

_WAITING = logging.getLogger("mira.waiting")
"""Logs slow operations when they begin; the command line shows them (`envs.core.wait_notices`)."""
GATHER_S = 0.003
"""Seconds that a request waits for others, so that they begin together, if none is in progress."""
MAX_BATCH = 16
"""Maximum number of requests in progress."""


@dataclass(slots=True)
class _Pending:
    job: Job
    answer: asyncio.Future[Row]


class LocalModel:
    """A :class:`models.base.ChatModel` over a generator in this process. One instance serves all workers."""

    def __init__(
        self,
        generator: TextGenerator,
        context: int,
        spec: str,
        *,
        longest_answer: int | None = None,
        vision: VisionPrompts | None = None,
        vision_problem: str = "",
    ) -> None:
        """*longest_answer*: the completion length in tokens that the checkpoint declares. *vision*: encodes prompts of
        a checkpoint that sees; *vision_problem*: why it does not."""
        self.spec = spec
        self._generator = generator
        self._vision = vision
        self._vision_problem = vision_problem
        self._prompts = PromptTokens(generator.tokenizer) if vision is None else vision
        self._encoding = asyncio.Lock()
        self._context = context
        self._longest_answer = longest_answer or context
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="local-model")
        self._queue: SimpleQueue[_Pending] = SimpleQueue()
        self._in_progress: dict[int, _Pending] = {}
        """What the thread has taken from the queue and not answered, by the `id` of its job."""
        self._pump: asyncio.Task[None] | None = None

    @classmethod
    def load(cls, folder: Path, *, adapter: Path | None = None, spec: str | None = None) -> LocalModel:
        """Reads the checkpoint. Raises :class:`ModelUnavailable`, in one line, if it cannot, or if packages of the
        extras `local`, `adapters` and `gguf` are missing."""
        name = spec or f"local:{folder}{f'+{adapter}' if adapter else ''}"
        _require_packages(folder, adapter, name)
        if "torch" not in sys.modules:
            _WAITING.info("importing torch")
        with _no_collections():
            from models.local.loading import load_generator

            _WAITING.info("loading the model %s", name)
            generator, context = load_generator(folder, adapter, name)
        return cls(
            generator,
            context,
            name,
            longest_answer=generator.declared_answer,
            vision=generator.prompts,
            vision_problem=generator.vision_problem,
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """See :class:`models.base.ChatModel`. A JSON Schema is described in the prompt, limits the tokens of the
        answer where the runtime can (:class:`models.local.batch_generation.Generator`), and is checked afterwards."""
        if self._vision is None and any(message.images for message in request.messages):
            why = f" ({self._vision_problem})" if self._vision_problem else ""
            raise ModelRejected(f"{self.spec} reads text only{why}: use --screenshots off")
        async with open_call(request.deadline_s, RetryPolicy(attempt_share=1.0)) as call:

            async def ask(sent: ChatRequest) -> Draft:
                return await self._ask(sent, call)

            return await checked_reply(request, ask, call, self.spec)

    async def aclose(self) -> None:
        """Cancels pending requests and releases the thread; requests in progress end at their next token."""
        if self._pump is not None:
            self._pump.cancel()
        while (waiting := self._next()) is not None:
            waiting.answer.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def prompt_tokens(self, messages: tuple[Message, ...], max_tokens: int) -> tuple[int, ...]:
        """The prompt as token ids. If too little of the context is left for the answer, its middle is removed."""
        return self._prompts.encode(messages, prompt_room(self._context, max_tokens))

    async def _ask(self, request: ChatRequest, call: Call) -> Draft:
        call.attempts += 1
        job = await self._encoded(request, call)
        row = await self._generate(job)
        tokens_in, tokens_out = len(job.prompt), len(row.tokens)
        thinking = self._thought_tokens(row.text, tokens_out)
        call.charge(
            Usage(
                tokens_in,
                tokens_cached=row.cached,
                tokens_thinking=thinking,
                tokens_out=tokens_out - thinking,
                cost_usd=0.0,
            )
        )
        if row.finish == "deadline":
            raise ModelTimeout(f"{self.spec}: no whole answer within {request.deadline_s:g} s")
        if row.finish == "refused":
            raise ModelRejected(f"{self.spec}: {row.text}")
        if row.finish == "length":
            cut = ModelTruncated(f"{self.spec}: the answer was cut at {job.max_tokens} tokens")
            cut.answered = True
            cut.sampled = SampledTokens(job.prompt, tuple(row.tokens), tuple(row.logprobs))
            raise cut
        return Draft(row.text, job.prompt, tuple(row.tokens), tuple(row.logprobs))

    def _thought_tokens(self, text: str, tokens: int) -> int:
        """Tokens of the leading thought of an answer *text*, at most its *tokens*; an empty thought has none."""
        thought = text[: len(text) - len(without_thoughts(text))]
        inner = re.sub(r"</?think(?:ing)?>", "", thought).strip()
        return min(tokens, len(self._prompts.plain(inner))) if inner else 0

    async def _encoded(self, request: ChatRequest, call: Call) -> Job:
        """Pictures are processed in a thread, one request at a time."""
        messages = _with_schema(request)
        if self._vision is None:
            return self._job(request, messages, call.remaining_s)
        room = prompt_room(self._context, request.max_tokens)
        async with self._encoding:
            encoded = await asyncio.to_thread(self._vision.encode_pictures, messages, room)
        return replace(self._job_of(encoded.ids, request, call.remaining_s), inputs=encoded.inputs)

    def _job(self, request: ChatRequest, messages: tuple[Message, ...], seconds: float) -> Job:
        return self._job_of(self.prompt_tokens(messages, request.max_tokens), request, seconds)

    def _job_of(self, prompt: tuple[int, ...], request: ChatRequest, seconds: float) -> Job:
        return Job(
            prompt=prompt,
            max_tokens=min(request.max_tokens, self._longest_answer, self._context - len(prompt)),
            temperature=request.temperature,
            seed=request.seed,
            stop=request.stop,
            ends_at=time.monotonic() + max(0.0, seconds),
            grammar=request.grammar,
            json_schema=None if request.schema is None else json.dumps(request.schema.model_json_schema()),
        )

    async def _generate(self, job: Job) -> Row:
        loop = asyncio.get_running_loop()
        waiting = _Pending(job, loop.create_future())
        self._queue.put(waiting)
        if self._pump is None or self._pump.done() or self._pump.get_loop() is not loop:
            self._pump = loop.create_task(self._serve())
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            job.unwanted.set()  # else the thread generates until the deadline, in place of other requests or the exit
            raise

    async def _serve(self) -> None:
        """Runs the thread until the queue is empty."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(GATHER_S)
        while not self._queue.empty():
            try:
                await loop.run_in_executor(self._thread, self._answer)
            except asyncio.CancelledError:
                for waiting in list(self._in_progress.values()):
                    waiting.job.unwanted.set()
                    waiting.answer.cancel()
                raise

    def _answer(self) -> None:
        """Answers requests until none is left, in the thread. A failure of the model fails those in progress, or the
        next one, so that each failure takes one away."""
        try:
            for row in self._generator.serve(self._arrivals):
                _post(self._in_progress.pop(id(row.job)), row)
        except Exception as error:  # noqa: BLE001 - each caller gets the model's error
            problem = ModelError(f"{self.spec}: {type(error).__name__}: {error}")
            for waiting in [*self._in_progress.values()] or filter(None, [self._next()]):
                _post(waiting, problem)
            self._in_progress.clear()

    def _arrivals(self, active: int) -> list[Job]:
        """The jobs that join *active* ones, in the thread."""
        jobs: list[Job] = []
        while active + len(jobs) < MAX_BATCH and (waiting := self._next()) is not None:
            if not waiting.answer.done():
                self._in_progress[id(waiting.job)] = waiting
                jobs.append(waiting.job)
        return jobs

    def _next(self) -> _Pending | None:
        try:
            return self._queue.get_nowait()
        except Empty:
            return None


def _post(waiting: _Pending, outcome: Row | ModelError) -> None:
    """Settles a request in its own event loop, if that is not closed. The thread may still be at work for a request of
    an earlier loop when it takes one of the next."""
    with suppress(RuntimeError):
        waiting.answer.get_loop().call_soon_threadsafe(_settle, waiting.answer, outcome)


def _settle(answer: asyncio.Future[Row], outcome: Row | ModelError) -> None:
    if answer.done():
        return
    if isinstance(outcome, Row):
        answer.set_result(outcome)
    else:
        answer.set_exception(outcome)


def _require_packages(folder: Path, adapter: Path | None, name: str) -> None:
    """Raises :class:`ModelUnavailable`, in one line that names the extra to install."""
    if adapter is not None:
        require(name, "adapters", *LOCAL_PACKAGES, "peft")
    require(name, "gguf" if gguf_file(folder) else "local", *LOCAL_PACKAGES)


@contextmanager
def _no_collections() -> Generates[None]:
    """Pauses garbage collection while torch and transformers are imported, which saves a fifth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def embedded() -> LocalModel:
    """The model that ships with the package, on ONNX Runtime. Raises :class:`ModelUnavailable` if a file is missing."""
    folder = embedded_dir()
    if not (folder / "config.json").is_file():
        raise ModelUnavailable("embedded: no weights in models/embedded; make them with: python -m training.embedded")
    _WAITING.info("loading the model embedded")
    from models.local.embedded_onnx import load_embedded

    loaded = load_embedded(folder)
    return LocalModel(loaded.generator, loaded.context, "embedded", longest_answer=loaded.longest_answer)


def _with_schema(request: ChatRequest) -> tuple[Message, ...]:
    """Adds the schema to the prompt."""
    if request.schema is None or not request.messages:
        return request.messages
    schema: dict[str, Any] = request.schema.model_json_schema()
    order = f"\n\nAnswer with one JSON object of this schema and nothing else:\n{json.dumps(schema, sort_keys=True)}"
    first = request.messages[0]
    return (Message(first.role, first.text + order), *request.messages[1:])
