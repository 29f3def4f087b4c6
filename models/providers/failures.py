"""Classifies what goes wrong between a provider's client and its server, in the same words for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from models.base import ModelBusy, ModelInvalidAnswer, ModelTruncated, ModelUnavailable
from models.transport import Failure, failure_of_status, quoted

_UNREACHABLE: Final = frozenset({"ConnectError", "ConnectTimeout"})
_BROKEN: Final = frozenset({"RemoteProtocolError", "ReadError", "DecodingError"})


def connection_failure(error: BaseException, server: str, *secrets: str) -> Failure:
    """*error* of an HTTP client while it talked to *server*; *secrets* are masked.

    Errors are recognised by class name: clients use httpx or httpx2, whose classes have the same names.
    """
    kind = type(error).__name__
    reason = quoted(f"{kind}: {error}" if str(error) else kind, *secrets)
    if kind in _UNREACHABLE:
        return Failure(ModelUnavailable, f"cannot reach {server}: {reason}; is the server running?", retry=True)
    if kind in ("UnsupportedProtocol", "InvalidURL"):
        return Failure(ModelUnavailable, f"base URL: {reason}")
    if kind in _BROKEN:
        return Failure(ModelTruncated, f"the answer broke off: {reason}", retry=True)
    return Failure(ModelBusy, f"the connection failed: {reason}", retry=True)


def status_failure(status: int, reason: str, headers: Mapping[str, str], model: str, server: str) -> Failure:
    """An HTTP error *status* with the server's *reason* (secrets masked), and what to do about it."""
    if status in (401, 403):
        reason += " (check the API key)"
    elif status == 404:
        reason += f" (requested model {model!r} from {server})"
    elif 300 <= status < 400:
        reason = f"redirects are not followed: set base_url to {headers.get('location', 'the new address')!r}"
    return failure_of_status(status, reason, headers)


def unreadable_answer(error: ValueError | RecursionError, expected: str) -> Failure:
    """The body of an answer that is not *expected*, such as "chat completion". It is not quoted: it may be long."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return Failure(ModelInvalidAnswer, f"no {expected}: {where}: {first['msg']}", retry=True, answered=True)
    return Failure(ModelTruncated, "the answer is not whole JSON", retry=True)


def cut_at(text: str, stops: tuple[str, ...]) -> str:
    """*text* before the first of *stops*, for servers that support no stop strings, or not all of them."""
    return text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]
