"""The episode's history: the latest actions, typed, without secrets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from agent.episode.episode import HISTORY_TAIL, Episode
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


def test_the_history_is_the_tail_of_the_actions() -> None:
    playing = episode()
    for number in range(HISTORY_TAIL + 5):
        playing.acted(clicked(str(number)), ABSENT, ABSENT)
    assert len(playing.past) == HISTORY_TAIL + 5
    assert playing.history == tuple(playing.past[-HISTORY_TAIL:])


def test_the_history_has_no_secret_and_the_past_is_unchanged() -> None:
    playing = episode()
    action = typed('the s3cret is "s3cret"', "s3cret")
    playing.acted(action, ABSENT, ABSENT)
    assert playing.past == [action]
    assert "s3cret" not in repr(playing.history)
    assert playing.history[0].log_line().count("<secret>KEY</secret>") == 3
