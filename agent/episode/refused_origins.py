"""Describes refused origins for people and the policy, with the `--allow` options that admit them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envs.core.trace import Commit, Intent
from envs.security.allowlist import SUBRESOURCES
from envs.security.blocked_requests import OTHERS, UNREADABLE, BlockedOrigin, RequestKind, merge_blocked_origins

ORIGINS_IN_PROMPT = 3
"""Origins listed in one prompt; the rest are counted."""
ORIGIN_CHARS = 60
"""Longest origin in a prompt; its end is kept, which holds the registered domain."""

_PICTURES: frozenset[RequestKind] = frozenset(("stylesheet", "image", "font", "media"))
_NAMES = {OTHERS: "further origins", UNREADABLE: "addresses that cannot be read"}


def blocked_in(steps: Iterable[tuple[Intent, Commit | None]]) -> Iterator[BlockedOrigin]:
    """Yields the refused origins of *steps*, in order."""
    for intent, commit in steps:
        yield from intent.seen.blocked_requests
        if commit is not None:
            yield from commit.result.blocked_requests


def news(blocked: Iterable[BlockedOrigin], known: Iterable[BlockedOrigin]) -> tuple[BlockedOrigin, ...]:
    """Returns those of *blocked* whose origin is not in *known*."""
    names = {entry.origin for entry in known}
    return tuple(entry for entry in blocked if entry.origin not in names)


def unreported(
    steps: Iterable[tuple[Intent, Commit | None]], seen_now: Iterable[BlockedOrigin]
) -> tuple[BlockedOrigin, ...]:
    """Returns the origins refused since the policy's last turn, in the last action and by the page *seen_now*, without
    those that were reported at an earlier turn."""
    reported: list[BlockedOrigin] = []
    since: tuple[BlockedOrigin, ...] = ()
    for intent, commit in steps:
        reported += [*since, *intent.seen.blocked_requests]
        since = commit.result.blocked_requests if commit is not None else ()
    return news(merge_blocked_origins((*since, *seen_now)), reported)


def problem(blocked: Sequence[BlockedOrigin]) -> str:
    """Returns one line for the policy, scripts before styles and pictures; empty where nothing was refused."""
    if not blocked:
        return ""
    ordered = sorted(blocked, key=lambda entry: _PICTURES.issuperset(entry.kinds))
    named = [f"{_cut(name_of(entry))} ({kinds_of(entry)})" for entry in ordered[:ORIGINS_IN_PROMPT]]
    more = [f"{len(blocked) - len(named)} more"] if len(blocked) > len(named) else []
    return f"this run may not reach, and refused requests of the page to: {', '.join([*named, *more])}"


def name_of(entry: BlockedOrigin) -> str:
    return _NAMES.get(entry.origin, entry.origin)


def kinds_of(entry: BlockedOrigin) -> str:
    """Returns the kinds of requests and their number, for example `script, image ×3`."""
    kinds = ", ".join(entry.kinds) or "request"
    return kinds if entry.requests <= 1 else f"{kinds} ×{entry.requests}"


def print_refused(console: Console, blocked: Sequence[BlockedOrigin], *, admits: bool = True) -> None:
    """Prints a table and, if *admits*, the `--allow` options; prints nothing where nothing was refused."""
    if not blocked:
        return
    console.print(refused_table(blocked))
    if admits and (options := allow_options(blocked)):
        console.print(Text(f"admit them with: {options}"), soft_wrap=True)
        console.print(Text(f"for passive loads alone, write {SUBRESOURCES} before an origin", "dim"), soft_wrap=True)


def refused_table(blocked: Sequence[BlockedOrigin]) -> Table:
    """Returns a table with one row an origin. Columns are not cut, so that values can be copied."""
    table = Table(title="refused origins", title_justify="left", header_style="bold")
    table.add_column("origin", overflow="fold")
    table.add_column("requests", justify="right")
    table.add_column("for", overflow="fold")
    for entry in blocked:
        table.add_row(Text(name_of(entry)), str(entry.requests), Text(", ".join(entry.kinds) or "-"))
    return table


def allow_options(blocked: Iterable[BlockedOrigin]) -> str:
    """Returns shell-quoted options, `--allow https://cdn.example --allow …`; empty where no rule admits an origin."""
    rules = dict.fromkeys(entry.allow for entry in blocked if entry.allow)
    return " ".join(f"--allow {shlex.quote(rule)}" for rule in rules)


def _cut(text: str) -> str:
    return text if len(text) <= ORIGIN_CHARS else "…" + text[1 - ORIGIN_CHARS :]
