"""Deadlines and retries of one model call, independent of a provider's protocol.

Guarantees for any behaviour of the server:

* a call ends at its total deadline: `asyncio.timeout` bounds all of it. HTTP read timeouts are per read, so a server
  that sends one byte a second never exceeds them;
* one attempt may use at most `RetryPolicy.attempt_share` of the deadline, which leaves time for a retry after a hang;
* while the server is unavailable (connection refused or broken, 429, 5xx, no answer) a request is retried for
  `RetryPolicy.window_s` seconds, the last time at their end; an unusable answer is retried at most
  `RetryPolicy.max_answers` times, because each is billed;
* waits between attempts have full jitter, with `Retry-After` as lower bound. A wait that would pass the deadline is not
  started: the call fails at once with the last error. :func:`wait_listener` sets a listener for waits;
* redirects are not followed, so an API key is never carried to another host.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from models.base import ModelBusy, ModelError, ModelRejected, ModelTimeout, ModelUnavailable, SampledTokens, Usage

if TYPE_CHECKING:
    from httpx2 import AsyncClient

T = TypeVar("T")

CONNECT_S = 10.0
"""Timeout of opening a connection, shorter than an attempt, for hosts that drop packets."""

RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Timeouts, lock conflicts, rate limits and overload. Other statuses are final."""

MAX_REASON = 300
"""Maximum length in characters of a server's message in an error."""


UNANSWERABLE_STATUSES = frozenset({400, 413, 422})
"""Statuses with which a working server refuses one request, e.g. for its length."""

RETRY_WINDOW_S: Final = 100.0
"""Default of `RetryPolicy.window_s`: less than the deadline of a call (120 s), so that time is left for an answer."""

ATTEMPT_SHARE: Final = 0.6
"""Default of `RetryPolicy.attempt_share`. A server that needs more than this share of the deadline for an answer is cut
off in every attempt, so a slow one needs a longer deadline."""


class Clock(Protocol):
    """The clock of retries."""

    def now(self) -> float:
        """Seconds, monotonic."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


CLOCK: Clock = SystemClock()
"""Read at every use, so that a test can replace it."""


def _now() -> float:
    return CLOCK.now()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When and how often a request is retried. Raises ValueError if `max_attempts` is below 1."""

    window_s: float = RETRY_WINDOW_S
    """Seconds of retries, from the first of consecutive failures. The deadline may end them earlier; a wait requested
    by the server may end later. 0: a request is sent once."""
    max_attempts: int | None = None
    """Requests for one answer, the first included; None: limited by the window only."""
    max_answers: int = 5
    """Unusable answers before the last one's error is raised."""
    base_s: float = 0.5
    """Upper bound of the first wait; it doubles with every attempt."""
    cap_s: float = 10.0
    """Upper bound of any wait that the server did not request."""
    attempt_share: float = ATTEMPT_SHARE
    """Share of the total deadline that one attempt may use (0 … 1]."""

    def __post_init__(self) -> None:
        if self.max_attempts is not None and self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, not {self.max_attempts}")


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt, as classified by the protocol's adapter."""

    error: type[ModelError]
    """The error to raise if this was the last attempt."""
    reason: str
    """One line, without keys."""
    retry: bool = False
    retry_after_s: float | None = None
    """The wait that the server requested; None without a request."""
    answered: bool = False
    """See :attr:`models.base.ModelError.answered`."""
    sampled: SampledTokens | None = None
    """See :attr:`models.base.ModelError.sampled`."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for its next attempt."""

    reason: str
    """The last failure, in one line."""
    seconds: float
    """Time since the first of consecutive failures."""
    patience_s: float
    """Time for which it will still retry."""


_LISTENER: ContextVar[Callable[[Waiting], None] | None] = ContextVar("wait_listener", default=None)


@contextmanager
def wait_listener(listener: Callable[[Waiting], None]) -> Generator[None]:
    """Calls *listener* before every wait of the calls inside the block. It must return at once and not raise."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


@dataclass(slots=True)
class _Series:
    """Consecutive failures."""

    began: float
    """Time of the first, on the clock."""
    retries: int = 0
    answers: int = 0
    """Unusable answers among them."""


@dataclass(slots=True)
class Call:
    """Budget and usage of one `complete` call. Made by :func:`open_call`."""

    deadline_s: float
    policy: RetryPolicy
    rng: random.Random = field(default_factory=random.Random)
    attempts: int = 0
    """Requests sent so far, repairs and fallbacks included."""
    spent: Usage | None = None
    """Sum over all answers, including unusable ones; None without an answer."""
    last: Failure | None = None
    started: float = field(default_factory=_now)

    @property
    def seconds(self) -> float:
        return _now() - self.started

    @property
    def remaining_s(self) -> float:
        return self.deadline_s - self.seconds

    async def send(self, attempt: Callable[[], Awaitable[T | Failure]]) -> T:
        """Runs *attempt* until it returns an answer; retries after failures with `retry` set.

        Raises the last failure's error if it is final, if the retry window or the attempts are exhausted, or if the
        next wait would pass the deadline.
        """
        series: _Series | None = None
        while True:
            outcome = await self._bounded(attempt)
            if not isinstance(outcome, Failure):
                return outcome
            self.last = outcome
            series = series or _Series(_now())
            series.answers += outcome.answered
            delay_s = self._next_delay_s(outcome, series)
            if reason := self._stop_reason(outcome, series, delay_s):
                error = _error_of(outcome, self._report(outcome, reason))
                if isinstance(error, ModelTimeout):
                    error.early = delay_s < self.remaining_s
                raise error
            self._notify(outcome, series)
            series.retries += 1
            await CLOCK.sleep(delay_s)

    def charge(self, usage: Usage) -> None:
        """Counts the usage of an answer, before it is checked."""
        self.spent = usage if self.spent is None else added(self.spent, usage)

    async def _bounded(self, attempt: Callable[[], Awaitable[T | Failure]]) -> T | Failure:
        self.attempts += 1
        limit_s = max(0.0, min(self.remaining_s, self.policy.attempt_share * self.deadline_s))
        bound = asyncio.timeout(limit_s)
        try:
            async with bound:
                return await attempt()
        except TimeoutError:
            if not bound.expired():
                raise
            reason = f"no whole answer within {limit_s:.1f} s, the time of one attempt"
            return Failure(ModelTimeout, reason, retry=True)

    def _next_delay_s(self, failure: Failure, series: _Series) -> float:
        """The next wait. One that the server did not request ends with the window, for a last attempt."""
        delay_s = self._delay_s(failure, series.retries)
        return delay_s if failure.retry_after_s is not None else min(delay_s, max(0.0, self._window_left_s(series)))

    def _delay_s(self, failure: Failure, retries: int) -> float:
        # Bounded exponent: with a long window there may be hundreds of attempts.
        jitter_s = self.rng.uniform(0.0, min(self.policy.cap_s, self.policy.base_s * 2 ** min(retries, 30)))
        return jitter_s if failure.retry_after_s is None else failure.retry_after_s + min(jitter_s, self.policy.base_s)

    def _window_left_s(self, series: _Series) -> float:
        return series.began + self.policy.window_s - _now()

    def _stop_reason(self, failure: Failure, series: _Series, delay_s: float) -> str:
        """Why no further attempt is made, for the message; empty if one is."""
        policy = self.policy
        if not failure.retry:
            return "it is final"
        if policy.max_attempts is not None and series.retries + 1 >= policy.max_attempts:
            return "no more are allowed"
        if series.answers >= policy.max_answers:
            return f"{series.answers} answers were unusable"
        if self._window_left_s(series) <= 0:
            return f"the retry window of {policy.window_s:g} s is over"
        if delay_s >= self.remaining_s:
            return f"the next one in {delay_s:.1f} s would pass the deadline of {self.deadline_s:g} s"
        return ""

    def _report(self, failure: Failure, end: str) -> str:
        if not failure.retry:
            return failure.reason
        return f"{failure.reason} ({self.attempts} attempt{'s' * (self.attempts > 1)} in {self.seconds:.1f} s; {end})"

    def _notify(self, failure: Failure, series: _Series) -> None:
        if listener := _LISTENER.get():
            patience_s = max(0.0, min(self._window_left_s(series), self.remaining_s))
            listener(Waiting(failure.reason, _now() - series.began, patience_s))


def _error_of(failure: Failure, message: str) -> ModelError:
    error = failure.error(message)
    error.answered = error.answered or failure.answered
    error.sampled = failure.sampled
    return error


@asynccontextmanager
async def open_call(
    deadline_s: float, policy: RetryPolicy, slots: asyncio.Semaphore | None = None
) -> AsyncGenerator[Call]:
    """Bounds its body by *deadline_s*, including the wait for a free slot.

    Raises :class:`ModelTimeout` at the deadline. Every :class:`ModelError` gets its attempts, seconds and usage.
    """
    call = Call(deadline_s, policy)
    bound = asyncio.timeout(deadline_s)
    try:
        async with bound, slots or nullcontext():
            yield call
    except TimeoutError:
        if not bound.expired():
            raise
        last = f"; before that: {call.last.reason}" if call.last else ""
        message = f"no answer within the deadline of {deadline_s:g} s after {call.attempts} attempts{last}"
        raise _stamped(ModelTimeout(message), call) from None
    except ModelError as error:
        raise _stamped(error, call) from None


def _stamped(error: ModelError, call: Call) -> ModelError:
    error.attempts = max(1, call.attempts)
    error.seconds = call.seconds
    error.usage = call.spent
    return error


def added(first: Usage, second: Usage) -> Usage:
    """The sum of two usages; an unknown cost makes the sum unknown."""
    known = first.cost_usd is not None and second.cost_usd is not None
    return Usage(
        tokens_in=first.tokens_in + second.tokens_in,
        tokens_cached=first.tokens_cached + second.tokens_cached,
        tokens_thinking=first.tokens_thinking + second.tokens_thinking,
        tokens_out=first.tokens_out + second.tokens_out,
        cost_usd=(first.cost_usd or 0.0) + (second.cost_usd or 0.0) if known else None,
    )


def http_client() -> AsyncClient:
    """One connection pool for all workers of a model. Uses the environment's proxies; callers bound the time."""
    import httpx2

    return httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=CONNECT_S), follow_redirects=False)


def usable_key(key: str) -> str:
    """*key* without white space around it. Raises :class:`ModelUnavailable` if it cannot be a header's value.

    Checked before a request, because errors of HTTP packages quote an invalid header, and so the key.
    """
    stripped = key.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise ModelUnavailable("the API key is empty or has invalid characters: copy it again")
    return stripped


_WEB_PAGE: Final = re.compile(r"\s*<(!doctype|html)\b", re.IGNORECASE)


def failure_of_status(status: int, reason: str, headers: Mapping[str, str]) -> Failure:
    """Classifies an HTTP error status. The header `x-should-retry` takes precedence. A *reason* that is a web page
    is left out of the message."""
    if _WEB_PAGE.match(reason):
        reason = "the answer is a web page, not one of a model server: check --base-url and the proxy"
    should_retry = headers.get("x-should-retry")
    retry = should_retry == "true" if should_retry in ("true", "false") else status in RETRIED_STATUSES
    error = ModelBusy if status == 429 or status >= 500 or retry else ModelRejected
    wait_s = retry_after_s(headers) if retry else None
    return Failure(error, f"HTTP {status}: {reason}", retry, wait_s, answered=status in UNANSWERABLE_STATUSES)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that the server requests to wait (RFC 9110 §10.2.3: seconds or a date), at least 0; None without one."""
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _seconds(text)
    if seconds is not None or not text:
        return seconds
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def well_formed(text: str) -> str:
    """*text* with lone surrogates and NUL replaced by U+FFFD: they cannot be sent as UTF-8 or stored everywhere."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def parsed_json(body: str) -> Any:
    """*body* as JSON whose texts are well formed. Raises ValueError if it is not complete JSON."""
    parsed = json.loads(body)
    if _SURROGATE.search(body):
        # A lone surrogate cannot be stored; a pair that is split over two escapes has been joined by `loads`.
        parsed = json.loads(well_formed(json.dumps(parsed, ensure_ascii=False)))
    return parsed


def quoted(message: str, *secrets: str) -> str:
    """A server's message on one line, truncated, with *secrets* masked."""
    for secret in secrets:
        if len(secret) >= 4:
            message = message.replace(secret, "***")
    line = " ".join(well_formed(message).split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"
