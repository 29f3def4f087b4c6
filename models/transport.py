"""Deadlines and retries of one model call. Nothing here knows a provider's protocol.

Guarantees, for whatever the server does:

* a call ends at its total deadline: `asyncio.timeout` is around everything. HTTP read timeouts are per read, so a
  server that drips a byte a second never trips them;
* one attempt may use at most `RetryPolicy.attempt_share` of the deadline: after a hang there is time to ask again;
* while the server is away (connection refused or broken, 429, 5xx, no answer) a request is sent again for
  `RetryPolicy.window_s` seconds, the last time at their end; an answer that came and was no use is drawn again at most
  `RetryPolicy.max_answers` times, for each of them is billed;
* waits between attempts have full jitter, `Retry-After` is a lower bound on them, and a wait that would pass the
  deadline is not begun: the call fails at once with what it knows. Whoever wants to say that a call waits hears of it
  through :func:`waits_heard_by`;
* redirects are not followed, so an API key is never carried to another host.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from models.base import ModelBusy, ModelError, ModelRejected, ModelTimeout, ModelUnavailable, Usage

if TYPE_CHECKING:
    from httpx2 import AsyncClient

T = TypeVar("T")

CONNECT_S = 10.0
"""Bound on opening a connection; a host that drops packets is found out sooner than by the attempt's share."""

RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Timeouts, lock conflicts, rate limits and overload. Every other status is the server's last word."""

MAX_REASON = 300
"""Characters of a server's own message that an error quotes."""


UNANSWERABLE_STATUSES = frozenset({400, 413, 422})
"""Statuses by which a server that works refuses this one request, e.g. for its length."""

RETRY_WINDOW_S: Final = 100.0
"""Default of `RetryPolicy.window_s`: less than the deadline of a call (120 s), so that an answer still has time."""


class Clock(Protocol):
    """The time that retries are measured in and wait for."""

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
"""Read at every use, so that a test can put another one here."""


def _now() -> float:
    return CLOCK.now()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a request is sent again. Raises ValueError where `max_attempts` is below 1."""

    window_s: float = RETRY_WINDOW_S
    """Seconds, from the first of several failures in a row on, in which a request is sent again. The deadline ends it
    earlier; a wait that the server itself asked for may end after it. 0: a request is sent once."""
    max_attempts: int | None = None
    """Requests for one answer, the first included; None: as many as the window has room for."""
    max_answers: int = 5
    """Answers that came and were no use, before the last one's error is raised."""
    base_s: float = 0.5
    """Upper end of the first wait; it doubles with every attempt."""
    cap_s: float = 10.0
    """Upper end of any wait that the server did not ask for."""
    attempt_share: float = 0.6
    """Share of the total deadline that one attempt may use (0 … 1]."""

    def __post_init__(self) -> None:
        if self.max_attempts is not None and self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, not {self.max_attempts}")


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt that gave no answer, as the protocol's adapter understood it."""

    error: type[ModelError]
    """What is raised if this was the last attempt."""
    reason: str
    """One line, without keys."""
    retry: bool = False
    retry_after_s: float | None = None
    """What the server asked for; None where it did not."""
    answered: bool = False
    """See :attr:`models.base.ModelError.answered`."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call whose server is away, before the next attempt."""

    reason: str
    """Of the last failure, one line."""
    seconds: float
    """Since the first of the failures in a row."""
    patience_s: float
    """For which it will go on asking."""


_HEARS: ContextVar[Callable[[Waiting], None] | None] = ContextVar("hears", default=None)


@contextmanager
def waits_heard_by(hear: Callable[[Waiting], None]) -> Generator[None]:
    """*hear* is told before every wait of the calls made within. It must return at once and not raise."""
    before = _HEARS.set(hear)
    try:
        yield
    finally:
        _HEARS.reset(before)


@dataclass(slots=True)
class _Series:
    """Failures in a row."""

    began: float
    """On the clock."""
    retries: int = 0
    answers: int = 0
    """Those among them that came and were no use."""


@dataclass(slots=True)
class Call:
    """What one `complete` has spent and may still spend. Made by :func:`open_call`."""

    deadline_s: float
    policy: RetryPolicy
    rng: random.Random = field(default_factory=random.Random)
    attempts: int = 0
    """Requests sent so far, repairs and fallbacks included."""
    spent: Usage | None = None
    """Sum over all answers that came, the useless ones included; None while none came."""
    last: Failure | None = None
    started: float = field(default_factory=_now)

    @property
    def seconds(self) -> float:
        return _now() - self.started

    @property
    def remaining_s(self) -> float:
        return self.deadline_s - self.seconds

    async def send(self, attempt: Callable[[], Awaitable[T | Failure]]) -> T:
        """Returns the first answer of *attempt*, which is run again after a failure that says so.

        Raises the last failure's error when it is final, when the retry window or the attempts are used up, or when
        the next wait would pass the deadline.
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
            if end := self._ending(outcome, series, delay_s):
                raise _error_of(outcome, self._report(outcome, end))
            self._tell(outcome, series)
            series.retries += 1
            await CLOCK.sleep(delay_s)

    def charge(self, usage: Usage) -> None:
        """Counts an answer that came, before anybody looks whether it is of use."""
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
            return Failure(ModelTimeout, f"no whole answer within {limit_s:.1f} s", retry=True)

    def _next_delay_s(self, failure: Failure, series: _Series) -> float:
        """The next wait; a guessed one ends with the window at the latest, so that the last attempt is made then."""
        delay_s = self._delay_s(failure, series.retries)
        return delay_s if failure.retry_after_s is not None else min(delay_s, max(0.0, self._window_left_s(series)))

    def _delay_s(self, failure: Failure, retries: int) -> float:
        # Bounded exponent: with a long window there may be hundreds of attempts.
        jitter_s = self.rng.uniform(0.0, min(self.policy.cap_s, self.policy.base_s * 2 ** min(retries, 30)))
        return jitter_s if failure.retry_after_s is None else failure.retry_after_s + min(jitter_s, self.policy.base_s)

    def _window_left_s(self, series: _Series) -> float:
        return series.began + self.policy.window_s - _now()

    def _ending(self, failure: Failure, series: _Series, delay_s: float) -> str:
        """Why no further attempt is made, for the message; empty where one is."""
        policy = self.policy
        if not failure.retry:
            return "it is final"
        if policy.max_attempts is not None and series.retries + 1 >= policy.max_attempts:
            return "no more are made"
        if series.answers >= policy.max_answers:
            return f"{series.answers} answers were no use"
        if self._window_left_s(series) <= 0:
            return f"the retry window of {policy.window_s:g} s is over"
        if delay_s >= self.remaining_s:
            return f"the next one in {delay_s:.1f} s would pass the deadline of {self.deadline_s:g} s"
        return ""

    def _report(self, failure: Failure, end: str) -> str:
        if not failure.retry:
            return failure.reason
        return f"{failure.reason} ({self.attempts} attempt{'s' * (self.attempts > 1)} in {self.seconds:.1f} s; {end})"

    def _tell(self, failure: Failure, series: _Series) -> None:
        if hear := _HEARS.get():
            patience_s = max(0.0, min(self._window_left_s(series), self.remaining_s))
            hear(Waiting(failure.reason, _now() - series.began, patience_s))


def _error_of(failure: Failure, message: str) -> ModelError:
    error = failure.error(message)
    error.answered = error.answered or failure.answered
    return error


@asynccontextmanager
async def open_call(
    deadline_s: float, policy: RetryPolicy, slots: asyncio.Semaphore | None = None
) -> AsyncGenerator[Call]:
    """Bounds its body by *deadline_s*, waiting for a free slot included.

    Raises :class:`ModelTimeout` at the deadline; every :class:`ModelError` leaves with its attempts and seconds.
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
    """One connection pool for all workers of a model. Proxies of the environment are used; time is bounded above it."""
    import httpx2

    return httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=CONNECT_S), follow_redirects=False)


def usable_key(key: str) -> str:
    """*key* without white space around it. Raises :class:`ModelUnavailable` if it cannot be a header's value.

    Checked before anything is sent: the errors of HTTP packages quote an illegal header, and so the key.
    """
    stripped = key.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise ModelUnavailable("the API key is empty or holds characters that no key has: copy it again")
    return stripped


def failure_of_status(status: int, reason: str, headers: Mapping[str, str]) -> Failure:
    """What an HTTP error status means for the call. `x-should-retry`, where a server sends it, has the last word."""
    wish = headers.get("x-should-retry")
    retry = wish == "true" if wish in ("true", "false") else status in RETRIED_STATUSES
    error = ModelBusy if status == 429 or status >= 500 or retry else ModelRejected
    asked_s = retry_after_s(headers) if retry else None
    return Failure(error, f"HTTP {status}: {reason}", retry, asked_s, answered=status in UNANSWERABLE_STATUSES)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds the server asks to wait (RFC 9110 §10.2.3: seconds or a date), at least 0; None if it does not say."""
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


def well_formed(text: str) -> str:
    """*text* with lone surrogates and NUL as U+FFFD: they cannot be sent as UTF-8, nor stored everywhere."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def quoted(message: str, *secrets: str) -> str:
    """A server's message on one line, cut, and without the keys it may echo."""
    for secret in secrets:
        if len(secret) >= 4:
            message = message.replace(secret, "***")
    line = " ".join(well_formed(message).split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"
