"""Rows of `results.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from agent.results import EpisodeResult
from envs.core.tasks import TaskRef
from envs.core.trace import Degraded, Failure, Loop, Totals
from envs.security.blocked_requests import BlockedOrigin

SECRET = "Kestrel7"
IDENTITY = {"run_id", "episode_id", "task.suite", "task.name", "task.written", "trace"}
CLOSED = {"outcome", "ended_by", "refused", "failure.category", "blocked_requests.kinds"}
ROW = EpisodeResult(
    run_id=SECRET,
    episode_id=SECRET,
    task=TaskRef(suite=SECRET, name=SECRET, seed=1, written=SECRET),
    attempt=1,
    instruction=f"log in with {SECRET}",
    outcome="broken",
    ended_by="error",
    answer=f"it is {SECRET}",
    impossible=False,
    reward=0.5,
    z=(True,),
    failure=Failure(
        category="other",
        key_step=1,
        reason=f"ParseError: {SECRET} is no number",
        loop=Loop(entry=1, period=1, repetitions=2, last=3),
        cut_short=True,
    ),
    declined=1,
    degraded=Degraded(planner=1, rater=1),
    error=f"ParseError: {SECRET} is no number",
    resumable=True,
    refused="policy",
    blocked_requests=(BlockedOrigin(origin=SECRET, requests=1, kinds=("image",), allow=SECRET),),
    totals=Totals(),
    expert_steps=1,
    trace=SECRET,
    folder=None,
)


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text of *value* with its path. Every field has to be set, so that none is left out."""
    match value:
        case BaseModel():
            if not isinstance(value, Totals):
                assert value.model_fields_set == set(type(value).model_fields), (
                    f"set every field of {path or 'the row'}"
                )
            for name, item in value.__dict__.items():
                yield from texts(item, f"{path}.{name}".lstrip("."))
        case tuple():
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                yield from texts(item, path)
        case str():
            yield path, value
        case _:
            pass


def test_every_text_of_a_row_is_masked_except_names_and_closed_sets() -> None:
    masked = ROW.masked(lambda text: text.replace(SECRET, "<secret>PW</secret>"))
    assert {path for path, text in texts(ROW) if SECRET not in text} == CLOSED
    assert {path for path, text in texts(masked) if SECRET in text} == IDENTITY
    assert masked.failure is not None and masked.failure.reason == "ParseError: <secret>PW</secret> is no number"
    assert ROW.masked(str) == ROW
