"""The episode's history: every action, typed, without secrets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from agent.episode.episode import Episode
from envs.core.action_place import ActionPlace
from envs.core.past_actions import PageName
from tests.past_actions import clicked, typed

ABSENT = cast(Any, None)


def episode() -> Episode:
    """An episode of which only the recording of actions is used."""

    def mask(text: str) -> str:
        return text.replace("s3cret", "<secret>KEY</secret>")

    trace = cast(Any, SimpleNamespace(mask=mask))
    return Episode(
        identity=ABSENT,
        config=ABSENT,
        components=ABSENT,
        environment=ABSENT,
        trace=trace,
        blobs=ABSENT,
        start=ABSENT,
        notify=ABSENT,
        saved=ABSENT,
        stopping=ABSENT,
    )


def test_the_history_is_every_action() -> None:
    playing = episode()
    for number in range(100):
        playing.acted(clicked(str(number)), ABSENT, ABSENT)
    assert playing.history == tuple(playing.past) and len(playing.past) == 100


def test_the_history_has_no_secret_and_the_past_is_unchanged() -> None:
    playing = episode()
    place = ActionPlace(where='in row "s3cret"', at='link "s3cret"', onto='row "s3cret"')
    page = PageName("http://a/?k=s3cret", "s3cret")
    action = replace(typed('the s3cret is "s3cret"', "s3cret"), place=place, page=page)
    playing.acted(action, ABSENT, ABSENT)
    assert playing.past == [action]
    assert "s3cret" not in repr(playing.history)
    assert playing.history[0].log_line().count("<secret>KEY</secret>") == 3
    assert playing.history[0].full_line().count("<secret>KEY</secret>") == 4


async def test_the_page_of_a_dropped_rating_counts_as_not_rated() -> None:
    """Else a page that hardly differs is not rated either, and what the dropped one achieved is missing."""
    playing = episode()
    rating = playing.reflecting = asyncio.create_task(asyncio.Event().wait())  # pyright: ignore[reportAttributeAccessIssue]
    playing.drop_reflection()
    await asyncio.wait([rating])
    assert rating.cancelled() and playing.reflecting is None and playing.unrated
