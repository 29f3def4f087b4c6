"""Stores declared secrets, fills them in at their own origins only, and masks them everywhere else.

The model knows a secret by name and writes `<secret>NAME</secret>`. The session replaces the name by the value if the
receiving frame has one of the secret's origins. Every text that could contain a value passes :meth:`SecretVault.mask`
before the model or a trace receives it.

:mod:`envs.security.secret_spellings` lists the spellings of a value that are recognised.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from pydantic import SecretStr

from envs.core.errors import BadInput
from envs.security.allowlist import Origins, origin_of
from envs.security.secret_bytes import names_in
from envs.security.secret_spellings import MIN_CHARS, Finder, Span

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_PLACEHOLDER = re.compile(r"<secret>([A-Za-z][A-Za-z0-9_]{0,63})</secret>")
_DECLARATION = "NAME=env:VARIABLE or NAME=file:PATH, optionally followed by @origin"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a text was not filled in. The message is for the policy and contains no value."""

    message: str


@dataclass(frozen=True, slots=True)
class _Secret:
    value: SecretStr
    origins: Origins


class SecretVault:
    """The values of a run's secrets. `repr` and errors show names only, and pickling raises an error."""

    def __init__(self, declared: Mapping[str, tuple[str, Origins]]) -> None:
        for name, (value, _) in declared.items():
            _check(name, value)
        self._secrets = {name: _Secret(SecretStr(value), origins) for name, (value, origins) in declared.items()}
        values = {name: value for name, (value, _) in declared.items()}
        self._text = _Masker(values)
        self._hosts = _Masker(values, any_case=True)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._secrets)

    @property
    def scopes(self) -> tuple[tuple[str, str], ...]:
        """The names, each with the origins at which its value may be typed."""
        return tuple((name, str(secret.origins)) for name, secret in self._secrets.items())

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def __repr__(self) -> str:
        return f"SecretVault({', '.join(self._secrets)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SecretVault is never stored or sent to another process")

    def fill(self, text: str, url: str) -> str | Refusal:
        """Replaces the names of secrets in *text* by values, for a frame at *url*; a Refusal if one may not be used
        there."""
        for name in dict.fromkeys(_PLACEHOLDER.findall(text)):
            secret = self._secrets.get(name)
            if secret is None:
                known = ", ".join(self._secrets) or "none"
                return Refusal(f"no secret is called {name}; declared: {known}")
            if not secret.origins.allows(url):
                here = origin_of(url)
                return Refusal(f"secret {name} may only be used at {secret.origins}, not at {here or 'this page'}")
        return _PLACEHOLDER.sub(lambda match: self._secrets[match.group(1)].value.get_secret_value(), text)

    def mask(self, text: str) -> str:
        """*text* with every value replaced by its `<secret>NAME</secret>`. Masking twice changes nothing."""
        return self._text.mask(text)

    def mask_host(self, origin: str) -> str:
        """Like `mask`, for a host name or an origin, which the browser always writes in lower case."""
        return self._hosts.mask(origin)

    def names_in(self, text: str, *, deep: bool = False) -> frozenset[str]:
        """The secrets whose values *text* spells; *deep*: also inside packed parts of it."""
        return self.names_in_bytes(text.encode("utf-8", "replace")) if deep else self._text.finder.names(text)

    def names_whole_in(self, text: str) -> frozenset[str]:
        """The secrets that *text* spells completely. For checks whose answer about a part would help to guess the
        rest."""
        return self._text.finder.names(text, cut=False)

    def names_in_host(self, url: str) -> frozenset[str]:
        """Like `names_in`, packed parts included, for an address, whose host is always in lower case."""
        return self.names_in(url, deep=True) | self._hosts.finder.names(url)

    def names_in_bytes(self, data: bytes) -> frozenset[str]:
        """The secrets whose values *data* contains in any spelling, packed ones included."""
        return names_in(self._text.finder, data) if self._secrets else frozenset()

    def named_in(self, text: str) -> frozenset[str]:
        """The declared secrets that *text* names in the form `<secret>NAME</secret>`."""
        return frozenset(name for name in _PLACEHOLDER.findall(text) if name in self._secrets)

    def mask_lines(self, lines: Sequence[str]) -> list[str]:
        """Like `mask`, for consecutive lines: a value that spans several lines is masked in each of them."""
        spans = self._text.finder.spans("\n".join(lines))
        if not spans:
            return list(lines)
        masked: list[str] = []
        start = 0
        for line in lines:
            inside = [
                Span(max(0, s.start - start), min(len(line), s.end - start), s.name)
                for s in spans
                if s.start < start + len(line) and s.end > start
            ]
            masked.append(self.mask(_replaced(line, inside)))
            start += len(line) + 1
        return masked

    def can_leave(self, allowed: Origins) -> bool:
        """True if *allowed* has a rule outside the scope of some secret."""
        return any(set(allowed.rules) - set(secret.origins.rules) for secret in self._secrets.values())

    def barred_at(self, url: str) -> tuple[str, ...]:
        """The secrets that may not be sent to *url*."""
        return tuple(name for name, secret in self._secrets.items() if not secret.origins.allows(url))

    @classmethod
    def declare(
        cls, declarations: Sequence[str], start_url: str | None, environ: Mapping[str, str] = os.environ
    ) -> SecretVault:
        """Parses `NAME=env:VARIABLE[@origin[,origin…]]` and `NAME=file:PATH[@origin…]`.

        Without `@origin` a secret belongs to the origin of *start_url*. Raises BadInput with one line that never
        contains a value. A literal value is refused, because command lines are logged.
        """
        declared: dict[str, tuple[str, Origins]] = {}
        for number, declaration in enumerate(declarations, start=1):
            name, value, origins = _read(declaration, number, start_url, environ)
            if name in declared:
                raise BadInput(f"secret {name} is declared twice")
            declared[name] = (value, origins)
        return cls(declared)


class _Masker:
    """Replaces the values that a finder finds."""

    def __init__(self, values: Mapping[str, str], *, any_case: bool = False) -> None:
        self.finder = Finder(values, any_case=any_case)
        known = "|".join(sorted(values, key=len, reverse=True))
        # Texts that were masked before stay as they are, even if a value is the word "secret".
        self._masked = re.compile(f"(<secret>(?:{known})</secret>)")

    def mask(self, text: str) -> str:
        if not self.finder.spans(text):
            return text
        parts = self._masked.split(text)
        parts[::2] = [_replaced(part, self.finder.spans(part)) for part in parts[::2]]
        return "".join(parts)


def _replaced(text: str, spans: Sequence[Span]) -> str:
    """Replaces the union of all spans, so that nothing remains of overlapping values."""
    shown: list[str] = []
    done = 0
    for start, end, name in spans:
        if start >= done:
            shown += [text[done:start], f"<secret>{name}</secret>"]
        done = max(done, end)
    return "".join([*shown, text[done:]])


def _check(name: str, value: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"secret {name!r}: a name is letters, digits and underscores, and begins with a letter")
    if len(value.strip()) < MIN_CHARS:
        raise BadInput(f"secret {name} is shorter than {MIN_CHARS} characters, too short to be masked")


def _read(declaration: str, number: int, start_url: str | None, environ: Mapping[str, str]) -> tuple[str, str, Origins]:
    name, equals, source = declaration.partition("=")
    if not equals or _NAME.fullmatch(name) is None:
        # Never quoted, because it may be the value in place of the name.
        raise BadInput(f"secret number {number} must be written {_DECLARATION}")
    kind, colon, place = source.partition(":")
    if not colon or kind not in ("env", "file"):
        raise BadInput(f"secret {name}: give where the value is, not the value: {_DECLARATION}")
    place, at, scope = place.rpartition("@") if "@" in place else (place, "", "")
    if at:
        origins = Origins.parse(scope.split(","))
        if origins.has_subresources:
            raise BadInput(
                f"secret {name}: a subresources: rule admits no pages to type it into; name the origin instead"
            )
    elif start_url is not None:
        origins = Origins().with_url(start_url)
    else:
        raise BadInput(f"secret {name}: say where it may be used, for example {name}={kind}:{place}@shop.example")
    return name, _value(name, kind, place, environ), origins


def _value(name: str, kind: str, place: str, environ: Mapping[str, str]) -> str:
    if kind == "env":
        if not place.isidentifier():  # it may be the value, expanded by a shell: do not repeat it
            raise BadInput(f"secret {name}: after env: comes the name of an environment variable, without $")
        value = environ.get(place)
        if value is None:
            raise BadInput(f"secret {name}: the environment variable {place} is not set")
        return value
    file = Path(os.path.expanduser(place))  # noqa: PTH111 - Path.expanduser raises for a name of no user
    try:
        return file.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"secret {name}: cannot read {place}: {reason}") from None


NO_SECRETS: Final = SecretVault({})
"""The vault of a run without secrets."""
