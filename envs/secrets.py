"""Declared secrets: put in at their own origin only, masked everywhere else.

The model knows a secret by name and writes `<secret>NAME</secret>`. The value is put in below the model, when the
frame that receives it has one of the secret's origins. On the way back, every text that could hold a value passes
:meth:`SecretVault.mask`.

What masking finds: the value itself and its URL-encoded, JSON-escaped, HTML-escaped, base64 and hexadecimal forms, and
each longer line of a value of several lines. What it cannot find: a value that a page has cut up, reversed, encrypted
or painted into a picture.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from envs.errors import BadInput
from envs.origins import Origins, origin_of

MIN_CHARS: Final = 4
"""A shorter value would be masked in the middle of ordinary words, and guessed from the masks."""
CUT_CHARS: Final = 12
"""Beginning of a longer value that is masked where a text was cut within it."""
_MIN_LINE_CHARS: Final = 8
_MIN_BASE64_CHARS: Final = 6

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_PLACEHOLDER = re.compile(r"<secret>([A-Za-z][A-Za-z0-9_]{0,63})</secret>")
_DECLARATION = "NAME=env:VARIABLE or NAME=file:PATH, optionally followed by @origin"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a text was not filled in; the message is for the policy and holds no value."""

    message: str


@dataclass(frozen=True, slots=True)
class _Secret:
    value: SecretStr
    origins: Origins


class SecretVault:
    """The values of a run's secrets. Shows names only: in `repr`, in errors, and it refuses to be pickled."""

    def __init__(self, declared: Mapping[str, tuple[str, Origins]]) -> None:
        for name, (value, _) in declared.items():
            _check(name, value)
        self._secrets = {name: _Secret(SecretStr(value), origins) for name, (value, origins) in declared.items()}
        forms = {name: _forms(value) for name, (value, _) in declared.items()}
        self._text = _Masker({form: name for name, found in forms.items() for form in found}, declared)
        self._hosts = _Masker({form.lower(): name for name, found in forms.items() for form in found}, declared)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._secrets)

    @property
    def scopes(self) -> tuple[tuple[str, str], ...]:
        """Each name, and the origins at which its value may be typed."""
        return tuple((name, str(secret.origins)) for name, secret in self._secrets.items())

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def __repr__(self) -> str:
        return f"SecretVault({', '.join(self._secrets)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SecretVault is never stored or sent to another process")

    def fill(self, text: str, url: str) -> str | Refusal:
        """*text* with the secrets it names put in, for a frame at *url*; a Refusal if any may not go there."""
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
        """As `mask`, for a host name or an origin: the browser writes those in lower case, whatever the page did."""
        return self._hosts.mask(origin)

    @classmethod
    def declare(
        cls, declarations: Sequence[str], start_url: str | None, environ: Mapping[str, str] = os.environ
    ) -> SecretVault:
        """Reads `NAME=env:VARIABLE[@origin[,origin…]]` and `NAME=file:PATH[@origin…]`.

        Without `@origin` a secret belongs to the origin of *start_url*. Raises BadInput with one line that
        never holds a value; a value given literally is refused, because command lines are logged.
        """
        declared: dict[str, tuple[str, Origins]] = {}
        for number, declaration in enumerate(declarations, start=1):
            name, value, origins = _read(declaration, number, start_url, environ)
            if name in declared:
                raise BadInput(f"secret {name} is declared twice")
            declared[name] = (value, origins)
        return cls(declared)


class _Masker:
    """Finds all forms at once; a text without any costs one substring search a form."""

    def __init__(self, forms: Mapping[str, str], names: Iterable[str]) -> None:
        self._forms = dict(forms)
        known = "|".join(sorted(names, key=len, reverse=True))
        # Texts that were masked before stay as they are, even if a value is the word "secret".
        self._masked = re.compile(f"(<secret>(?:{known})</secret>)")

    def mask(self, text: str) -> str:
        if not any(form[:CUT_CHARS] in text for form in self._forms):
            return text
        parts = self._masked.split(text)
        parts[::2] = [self._mask_part(part) for part in parts[::2]]
        return "".join(parts)

    def _mask_part(self, text: str) -> str:
        """Replaces the union of all matches, so that overlapping values leave no rest."""
        spans = sorted(
            (start, end, name)
            for form, name in self._forms.items()
            for start, end in (*_spans(text, form), *_cut_spans(text, form))
        )
        shown: list[str] = []
        done = 0
        for start, end, name in spans:
            if start >= done:
                shown += [text[done:start], f"<secret>{name}</secret>"]
            done = max(done, end)
        return "".join([*shown, text[done:]])


def _spans(text: str, form: str) -> Iterable[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + 1)


def _cut_spans(text: str, form: str) -> Iterable[tuple[int, int]]:
    """Where *text* holds the beginning of *form* and was cut there: before `…`, or at its end."""
    for cut in (*(match.start() for match in re.finditer("…", text)), len(text)):
        start = text.find(form[:CUT_CHARS], max(0, cut - len(form) + 1), cut)
        while start >= 0 and len(form) > CUT_CHARS:
            if form.startswith(text[start:cut]):
                yield start, cut
                break
            start = text.find(form[:CUT_CHARS], start + 1, cut)


def _forms(value: str) -> frozenset[str]:
    """Every spelling of *value* that is masked."""
    lines = [line for line in value.splitlines() if len(line) >= _MIN_LINE_CHARS]
    found: set[str] = set()
    for plain in {value, value.strip(), value.replace("\n", "\r\n"), *lines}:
        if len(plain) >= MIN_CHARS:
            found |= _escaped(plain) | _base64(plain.encode()) | _hex(plain.encode())
    return frozenset(found)


def _escaped(value: str) -> set[str]:
    urls = {
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        quote(value, safe="!'()*~"),
        quote(quote(value, safe="")),
    }
    urls |= {re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), url) for url in urls}
    jsons = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    jsons |= {json.dumps(text)[1:-1] for text in jsons} | {text.replace("/", "\\/") for text in jsons}
    htmls = {html.escape(value), html.escape(value, quote=False), html.escape(value).replace("&#x27;", "&#39;")}
    return {value} | urls | jsons | htmls


def _base64(value: bytes) -> set[str]:
    """The characters that stand for *value* alone, wherever in a longer encoded text it begins."""
    found: set[str] = set()
    for shift, skip in ((0, 0), (1, 2), (2, 3)):
        coded = base64.b64encode(bytes(shift) + value).decode()
        whole = coded.rstrip("=")[: len(coded) if (shift + len(value)) % 3 == 0 else -1][skip:]
        if len(whole) >= _MIN_BASE64_CHARS:
            found |= {whole, whole.replace("+", "-").replace("/", "_")}
    return found


def _hex(value: bytes) -> set[str]:
    return {value.hex(), value.hex().upper()}


def _check(name: str, value: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"secret {name!r}: a name is letters, digits and underscores, and begins with a letter")
    if len(value.strip()) < MIN_CHARS:
        raise BadInput(f"secret {name} is shorter than {MIN_CHARS} characters, too short to be masked")


def _read(declaration: str, number: int, start_url: str | None, environ: Mapping[str, str]) -> tuple[str, str, Origins]:
    name, equals, source = declaration.partition("=")
    if not equals or _NAME.fullmatch(name) is None:
        # Never quoted: somebody may have put the value where the name belongs.
        raise BadInput(f"secret number {number} must be written {_DECLARATION}")
    kind, colon, place = source.partition(":")
    if not colon or kind not in ("env", "file"):
        raise BadInput(f"secret {name}: give where the value is, not the value: {_DECLARATION}")
    place, at, scope = place.rpartition("@") if "@" in place else (place, "", "")
    if at:
        origins = Origins.parse(scope.split(","))
        if origins.has_subresources:
            raise BadInput(
                f"secret {name}: it is typed into pages, and a subresources: rule opens none; name the origin"
            )
    elif start_url is not None:
        origins = Origins().with_url(start_url)
    else:
        raise BadInput(f"secret {name}: say where it may be used, for example {name}={kind}:{place}@shop.example")
    return name, _value(name, kind, place, environ), origins


def _value(name: str, kind: str, place: str, environ: Mapping[str, str]) -> str:
    if kind == "env":
        if not place.isidentifier():  # a shell may have put the value here: do not repeat it
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
"""The vault of a run that declared none."""
