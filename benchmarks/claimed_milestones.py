"""How often a policy's rationale says that a milestone is done which its prompt shows as open.

    python -m benchmarks.claimed_milestones runs/planning/reference runs/planning/same

It reads runs of the profile `small` (:mod:`agent.episode.short_prompts`), whose reasons are `Done: … To do: …`. One
claims the milestone if its first part has at least three quarters of the milestone's words. The answer whose action was
taken counts, at every step whose prompt shows a milestone. Since 30 November 2026 constrained reasons begin with `Not
yet: MILESTONE`, so later runs count none.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from agent.run.discover_traces import EpisodeFile, discover_traces

_SHOWN: Final = re.compile(r"Still to do now\n.*\nso that: (.*)\n")
SHARE: Final = 0.75
"""Least share of the milestone's words in the part of a reason that says what is done."""


class Counts(NamedTuple):
    """Answers to prompts with a milestone, and episodes with such an answer."""

    answers: int
    claims: int
    """Answers that claim the milestone."""
    episodes: int
    claiming: int
    """Episodes with at least one claim."""


def claims(reason: str, milestone: str) -> bool:
    """Whether *reason* calls *milestone* done."""
    done, wanted = reason.partition("To do")[0], _words(milestone)
    return done.startswith("Done") and len(wanted & _words(done)) >= SHARE * len(wanted) > 0


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def shown_milestone(prompt: str) -> str | None:
    """The milestone that the last message of a short prompt shows; None without one."""
    match = _SHOWN.search(prompt)
    return None if match is None else match[1]


def count(folder: Path) -> Counts:
    """The counts of the runs in *folder*. Raises BadInput for a folder without traces."""
    answers_of = ([claims(*asked) for asked in _asked(file)] for file in discover_traces([folder]))
    episodes = [claimed for claimed in answers_of if claimed]
    answers = [claim for claimed in episodes for claim in claimed]
    return Counts(len(answers), sum(answers), len(episodes), sum(map(any, episodes)))


def _asked(file: EpisodeFile) -> Iterator[tuple[str, str]]:
    """The reason and the shown milestone of every step that shows one."""
    for step in file.read().steps:
        prompts = [call.prompt_blob for call in step.intent.calls if call.role == "policy" and call.prompt_blob]
        shown = shown_milestone(json.loads(file.blobs.text(prompts[-1]))[-1]["text"]) if prompts else None
        if shown is not None:
            yield step.intent.rationale, shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="runs, or folders of runs, of one arm each")
    for folder in parser.parse_args().folders:
        found = count(folder)
        print(
            f"{folder}: {found.claims} of {found.answers} answers call the shown milestone done, "
            f"in {found.claiming} of {found.episodes} episodes"
        )


if __name__ == "__main__":
    main()
