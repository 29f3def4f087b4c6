"""Refused origins as people and the policy read them, and the `--allow` that would admit them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envs.core.trace import Commit, Intent
from envs.security.allowlist import SUBRESOURCES
from envs.security.blocked_requests import OTHERS, UNREADABLE, BlockedOrigin, RequestKind, summed

ORIGINS_IN_PROMPT = 3
"""Origins that the policy is told of at once; the rest are counted."""
ORIGIN_CHARS = 60
"""Of one origin in a prompt: its end is what says whose it is."""

_PICTURES: frozenset[RequestKind] = frozenset(("stylesheet", "image", "font", "media"))
_NAMES = {OTHERS: "further origins", UNREADABLE: "addresses that cannot be read"}


def blocked_in(steps: Iterable[tuple[Intent, Commit | None]]) -> Iterator[BlockedOrigin]:
    """What was refused up to the last of *steps*, in order."""
    for intent, commit in steps:
        yield from intent.seen.blocked_requests
        if commit is not None:
            yield from commit.result.blocked_requests


def news(blocked: Iterable[BlockedOrigin], known: Iterable[BlockedOrigin]) -> tuple[BlockedOrigin, ...]:
    """Those of *blocked* whose origin is not among *known*."""
    names = {one.origin for one in known}
    return tuple(one for one in blocked if one.origin not in names)


def untold(
    steps: Iterable[tuple[Intent, Commit | None]], seen_now: Iterable[BlockedOrigin]
) -> tuple[BlockedOrigin, ...]:
    """What was refused since the policy's last turn, in the last action and by the page *seen_now*; origins that were
    refused before an earlier turn are left out."""
    told: list[BlockedOrigin] = []
    since: tuple[BlockedOrigin, ...] = ()
    for intent, commit in steps:
        told += [*since, *intent.seen.blocked_requests]
        since = commit.result.blocked_requests if commit is not None else ()
    return news(summed((*since, *seen_now)), told)


def problem(blocked: Sequence[BlockedOrigin]) -> str:
    """One line for the policy, what makes a page work before what makes it look; empty where nothing was refused."""
    if not blocked:
        return ""
    telling = sorted(blocked, key=lambda one: _PICTURES.issuperset(one.kinds))
    named = [f"{_cut(name_of(one))} ({what_of(one)})" for one in telling[:ORIGINS_IN_PROMPT]]
    more = [f"{len(blocked) - len(named)} more"] if len(blocked) > len(named) else []
    return f"this run may not reach, and refused requests of the page to: {', '.join([*named, *more])}"


def name_of(one: BlockedOrigin) -> str:
    return _NAMES.get(one.origin, one.origin)


def what_of(one: BlockedOrigin) -> str:
    """`script, image ×3`"""
    kinds = ", ".join(one.kinds) or "request"
    return kinds if one.requests <= 1 else f"{kinds} ×{one.requests}"


def print_refused(console: Console, blocked: Sequence[BlockedOrigin], *, admits: bool = True) -> None:
    """A table and, where the world *admits* more origins, the options for it; nothing where nothing was refused."""
    if not blocked:
        return
    console.print(refused_table(blocked))
    if admits and (options := allow_options(blocked)):
        console.print(Text(f"admit them with: {options}"), soft_wrap=True)
        console.print(Text(f"for passive loads alone, write {SUBRESOURCES} before an origin", "dim"), soft_wrap=True)


def refused_table(blocked: Sequence[BlockedOrigin]) -> Table:
    """One row an origin; no column is cut, because its values are meant to be copied."""
    table = Table(title="refused origins", title_justify="left", header_style="bold")
    table.add_column("origin", overflow="fold")
    table.add_column("requests", justify="right")
    table.add_column("for", overflow="fold")
    for one in blocked:
        table.add_row(Text(name_of(one)), str(one.requests), Text(", ".join(one.kinds) or "-"))
    return table


def allow_options(blocked: Iterable[BlockedOrigin]) -> str:
    """`--allow https://cdn.example --allow …`, ready for a shell; empty where no rule admits any of them."""
    rules = dict.fromkeys(one.allow for one in blocked if one.allow)
    return " ".join(f"--allow {shlex.quote(rule)}" for rule in rules)


def _cut(text: str) -> str:
    return text if len(text) <= ORIGIN_CHARS else "…" + text[1 - ORIGIN_CHARS :]
