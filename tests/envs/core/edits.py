"""Edits of a written trace, as an attacker of training data would make them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from envs.core.trace_chain import CHAINED_SINCE, START, linked_line, take_apart

Edit = Callable[[list[bytes]], list[bytes]]
"""Maps the lines of a trace, without line breaks, to edited lines."""


def rewrite(path: Path, edit: Edit) -> None:
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"".join(line + b"\n" for line in edit(lines)))


def set_in(kind: str, change: Callable[[dict[str, Any]], object]) -> Edit:
    """Changes the values of the first line of *kind* and keeps its chain value and mark."""

    def edit(lines: list[bytes]) -> list[bytes]:
        place = next(i for i, line in enumerate(lines) if json.loads(line)["kind"] == kind)
        values = json.loads(lines[place])
        change(values)
        encoded = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
        assert encoded != lines[place]
        return [*lines[:place], encoded, *lines[place + 1 :]]

    return edit


def rechained(edit: Edit, *, own: bool = False) -> Edit:
    """Applies *edit*, then computes the chain of all lines as a writer would."""

    def again(lines: list[bytes]) -> list[bytes]:
        value, out = START, list[bytes]()
        for line in edit(lines):
            linked, value = linked_line(value, take_apart(line).body, own=own)
            out.append(linked)
        return out

    return again


def unchained(*, version: int = CHAINED_SINCE) -> Edit:
    """Removes all chain values and sets the header's *version*."""

    def edit(lines: list[bytes]) -> list[bytes]:
        bodies = [take_apart(line).body for line in lines]
        header = json.loads(bodies[0]) | {"schema_version": version}
        return [json.dumps(header, separators=(",", ":")).encode(), *bodies[1:]]

    return edit


EDITS: Final[dict[str, tuple[Edit, int]]] = {
    "outcome": (set_in("footer", lambda line: line.update(outcome="success")), 7),
    "reward": (set_in("footer", lambda line: line["score"].update(reward=0.5)), 7),
    "evidence": (set_in("footer", lambda line: line["score"].update(evidence="all done")), 7),
    "milestones of the footer": (set_in("footer", lambda line: line["rating"].update(z=[True, False])), 7),
    "answer": (set_in("footer", lambda line: line.update(answer="42")), 7),
    "mark of the footer": (set_in("footer", lambda line: line.update(chain="0" * 64)), 7),
    "action": (set_in("intent", lambda line: line["action"].update(ref=9)), 3),
    "text of the action": (set_in("intent", lambda line: line["calls"][0].update(completion="click [9]")), 3),
    "prompt": (set_in("intent", lambda line: line["calls"][0].update(prompt_blob="0" * 64)), 3),
    "page": (set_in("intent", lambda line: line["seen"].update(text_blob="0" * 64)), 3),
    "rating": (set_in("intent", lambda line: line["rating"].update(z=[True, True])), 3),
    "raw answer": (set_in("intent", lambda line: line.update(raw="other")), 3),
    "result": (set_in("commit", lambda line: line["result"].update(status="stale")), 4),
    "plan": (set_in("plan", lambda line: line["milestones"][0].update(text="other")), 2),
    "instruction": (set_in("header", lambda line: line.update(instruction="other")), 1),
    "task": (set_in("header", lambda line: line["task"].update(seed=77)), 1),
    "order": (lambda lines: [*lines[:2], *lines[4:6], *lines[2:4], lines[6]], 3),
    "a step removed": (lambda lines: [*lines[:4], lines[6]], 5),
    "the first step removed": (lambda lines: [*lines[:2], *lines[4:]], 3),
    "the plan removed": (lambda lines: [lines[0], *lines[2:]], 2),
    "a step added": (lambda lines: [*lines[:4], *lines[2:]], 5),
    "an event added": (lambda lines: [*lines[:2], b'{"kind":"event","step":0,"name":"x","at":""}', *lines[2:]], 3),
    "one line without its chain": (lambda lines: [*lines[:2], take_apart(lines[2]).body, *lines[3:]], 3),
    "no line with a chain": (unchained(), 1),
    "spaces": (lambda lines: [*lines[:3], json.dumps(json.loads(lines[3])).encode(), *lines[4:]], 4),
}
"""Edits by name, of a trace with header, plan, two steps and footer, each with the first line that is then invalid."""
