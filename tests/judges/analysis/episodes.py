"""Short episodes written as lines: `PAGE | ACTION`.

PAGE is an address and, after a blank, what makes two observations of it differ: `/cart`, `/cart 2 items`. What is
written the same is the same page, in every episode. ACTION is one of

    click ROLE NAME        click ROLE NAME #1 (its rank among namesakes)
    type ROLE NAME = TEXT  a final `⏎` presses Enter afterwards; select ROLE NAME = OPTION
    goto URL, press KEYS, find TEXT, back, scroll, wait, stop, stop ANSWER

and a `!` before it makes it fail.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from envs.core.actions import ACTION, ActionResult, Status
from envs.core.blobs import BlobStore
from envs.core.tasks import Milestone, MilestoneCheck, Score, TaskRef
from envs.core.trace import (
    Commit,
    ElementKeyRecord,
    EndedBy,
    Footer,
    Header,
    Intent,
    ObservationRecord,
    Outcome,
    Rating,
    Timings,
    Totals,
)
from envs.core.trace_reader import Step, Trace
from envs.observer.page_state import page_state
from judges.analysis import Pages

NOW = "2026-01-01T00:00:00Z"
HOST = "http://shop.test"
NO_PAGES = Pages(BlobStore(Path("/nonexistent")))
"""No page texts: equal pages have equal blobs."""


def steps(*lines: str, z: Sequence[str] = (), host: str = HOST, refs_from: int = 1) -> list[Step]:
    """*z* holds the milestones seen at each step, as `010`; *refs_from* is the number of each step's element."""
    return [_step(i, line, z[i - 1] if z else "", host, refs_from + i) for i, line in enumerate(lines, 1)]


def observed_steps(folder: Path, *observations: tuple[str, str], apart_s: float = 0.0) -> tuple[list[Step], Pages]:
    """Steps (`PAGE | ACTION`, as above) with the text of each page, stored below *folder*. *apart_s* is the time from
    one observation to the next, in seconds."""
    store = BlobStore(folder / "blobs")
    found: list[Step] = []
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for step, (_, text) in zip(steps(*(line for line, _ in observations)), observations, strict=True):
        state = page_state(step.intent.seen.url, text)
        seen = step.intent.seen.model_copy(update={"text_blob": store.put_text(text), "state": state})
        intent = step.intent.model_copy(update={"seen": seen, "at": at.isoformat()})
        found.append(Step(intent, step.commit))
        at += timedelta(seconds=apart_s)
    return found, Pages(store)


def trace(
    *lines: str,
    ended_by: EndedBy = "max_steps",
    outcome: Outcome = "failure",
    z: Sequence[str] = (),
    episode_id: str = "failed",
    instruction: str = "Change my last name to Oakley",
    **footer: Any,
) -> Trace:
    """A finished trace of these steps; *footer* replaces fields of its footer."""
    names = tuple(Milestone(id=f"m{i}", text=f"Milestone {i}") for i in range(len(z[0]) if z else 0))
    header = Header(
        run_id="run",
        episode_id=episode_id,
        task=TaskRef(suite="sites", name="task"),
        instruction=instruction,
        category="shop",
        reference_milestones=names,
        config={"policy": "scripted"},
        versions={},
        started_at=NOW,
    )
    values: dict[str, Any] = {
        "outcome": outcome,
        "ended_by": ended_by,
        "judged_by": "checker",
        "score": Score(status="failure", reward=0.0, evidence="the name is unchanged"),
        "totals": Totals(steps=len(lines)),
        "at": NOW,
    }
    return Trace(
        Path("t.jsonl"), header, (), tuple(steps(*lines, z=z)), (), Footer.model_validate(values | footer), torn=False
    )


def checked(*achieved: bool) -> tuple[MilestoneCheck, ...]:
    return tuple(MilestoneCheck(achieved=met, evidence="seen in the database" if met else "") for met in achieved)


def _step(number: int, line: str, z: str, host: str, ref: int) -> Step:
    page, _, text = (part.strip() for part in line.partition("|"))
    failed, text = text.startswith("!"), text.lstrip("!")
    values, target = _action(text, ref)
    digest = hashlib.sha256(page.encode()).hexdigest()
    seen = ObservationRecord(
        url=host + page.split(" ")[0],
        title="",
        digest=digest[:16],
        state=digest[:16],
        text_blob=digest,
        keys_blob="",
        controls_total=0,
    )
    intent = Intent(
        step=number,
        seen=seen,
        rating=Rating(z=tuple(c == "1" for c in z), source="state"),
        action=ACTION.validate_python(values),
        raw=text,
        target=target,
        at=NOW,
    )
    status = Status.FAILED if failed else Status.STOPPED if values["kind"] == "stop" else Status.OK
    return Step(intent, Commit(step=number, result=ActionResult(status=status), timings=Timings(), at=NOW))


def _action(text: str, ref: int) -> tuple[dict[str, Any], ElementKeyRecord | None]:
    kind, _, rest = text.partition(" ")
    match kind:
        case "click" | "hover":
            return {"kind": kind, "ref": ref}, _key(rest, ref)
        case "type" | "select":
            element, _, value = (part.strip() for part in rest.partition("="))
            typed = {"text": value.rstrip("⏎ "), "enter": value.endswith("⏎")} if kind == "type" else {"option": value}
            return {"kind": kind, "ref": ref} | typed, _key(element, ref)
        case "scroll":
            return {"kind": kind, "direction": rest or "down"}, None
        case "stop":
            return {"kind": kind, "answer": rest or None}, None
        case _:
            names = {"goto": "url", "press": "keys", "find": "text"}
            value = HOST + rest if kind == "goto" else rest
            return {"kind": kind} | ({names[kind]: value} if kind in names else {}), None


def _key(text: str, ref: int) -> ElementKeyRecord:
    role, _, name = text.partition(" ")
    name, _, ordinal = name.partition(" #")
    return ElementKeyRecord(ref=ref, frame="", role=role, name=name, ordinal=int(ordinal or 0), digest="0")
