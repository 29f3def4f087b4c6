"""Records the labelled failures again: real runs in Chromium, each driven into one kind of failure (`drivers.py`).

    python tests/data/failures/record.py [--keep 24] [--only CATEGORY]

Writes `episodes/`, `blobs/`, `references/` and `labels.jsonl` beside this file. An episode is kept only if it failed as
it was meant to: by the checker's word, and ended in the way its kind says. The analyzer's rules have no part in it.
Takes some ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]

from drivers import KINDS, Category, Kind, Saboteur  # noqa: E402

from agent.config import parse_config  # noqa: E402
from agent.run.oracle import oracle_policy  # noqa: E402
from agent.run.runner import run_suite  # noqa: E402
from envs.core.action_languages import language  # noqa: E402
from envs.core.actions import Back  # noqa: E402
from envs.core.tasks import TaskSelection  # noqa: E402
from envs.core.trace_store import Trace, read_trace  # noqa: E402

MAX_STEPS = 16
TASKS = {
    "sites": (
        "shop-order", "shop-admin-readdress", "forum-handle-flag", "code-close-duplicate", "cms-create-article",
        "map-walk-or-drive", "multi-price-to-forum", "shop-compare", "forum-move-topic", "code-move-two",
        "cms-compare-events", "map-shortest-drive", "shop-two-in-basket", "shop-admin-customer-figures",
        "forum-author-joined", "code-new-ticket", "cms-contact-details", "multi-topic-to-ticket",
    ),
    "miniwob": (
        "login-user", "click-checkboxes-large", "email-inbox-forward", "use-autocomplete", "phone-book", "buy-ticket",
        "form-sequence-2", "social-media-some", "multi-layouts", "copy-paste-2", "click-tab-2-hard", "search-engine",
    ),
}  # fmt: skip
ROUNDS = {"sites": 7, "miniwob": 9}


@dataclass(frozen=True, slots=True)
class Label:
    """One line of `labels.jsonl`."""

    trace: str
    kind: str
    category: Category
    key_step: int
    how: str


async def record(keep: int, only: Category | None) -> None:
    """*only*: records this category again and leaves the others as they are."""
    found: list[tuple[Label, Path]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for suite, names in TASKS.items():
            found += [one async for one in _suite(suite, names, Path(scratch), only)]
        _write(found, keep, only)


async def _suite(
    suite: str, names: Sequence[str], scratch: Path, only: Category | None
) -> AsyncIterator[tuple[Label, Path]]:
    references = await _play(suite, names, "reference", scratch, None)
    steps = {trace.header.task.id: len(trace.steps) for trace in references}
    names = [name for name in names if f"{suite}/{name}/0" in steps]
    kinds = [kind for kind in KINDS if suite in kind.suites and only in (None, kind.category)]
    rounds, stride = (ROUNDS[suite], ROUNDS[suite]) if only is None else (len(kinds), 1)
    for number in range(rounds):
        chosen = {
            f"{suite}/{name}/0": kinds[(position * stride + number) % len(kinds)] for position, name in enumerate(names)
        }
        oracle = oracle_policy("oracle", suite, language("program"))
        saboteur = Saboteur(oracle, language("program"), chosen, steps)
        planner = "none" if number % 3 == 2 else "reference"
        for trace in await _play(suite, names, planner, scratch, saboteur):
            task = trace.header.task
            if task.id in saboteur.key_steps and as_meant(trace, chosen[task.id]):
                kind = chosen[task.id]
                name = f"{kind.name.replace(',', '').replace(' ', '_')}--{task.name}.jsonl"
                label = Label(f"episodes/{name}", kind.name, kind.category, saboteur.key_steps[task.id], kind.how)
                yield label, trace.path


async def _play(
    suite: str, names: Sequence[str], planner: str, scratch: Path, policy: Saboteur | None
) -> Sequence[Trace]:
    values = {
        "policy": "oracle" if policy is None else "scripted",
        "planner": planner,
        "fsync": False,
        "limits": {"max_steps": 40 if policy is None else MAX_STEPS},
    }
    run = await run_suite(
        parse_config(values, "record"), TaskSelection(suite, tuple(names), (0,)), scratch, policy=policy
    )
    print(suite, planner, Counter(one.outcome for one in run.episodes), flush=True)
    if policy is None:
        _copy_references(run.folder, [one.trace for one in run.episodes if one.outcome == "success"])
    return [
        read_trace(run.folder / one.trace) for one in run.episodes if policy is not None or one.outcome == "success"
    ]


def as_meant(trace: Trace, kind: Kind) -> bool:
    """Did the episode fail, and end, as its kind says?"""
    footer = trace.footer
    if footer is None or footer.outcome not in ("failure", "broken"):
        return False
    if kind.name == "model breaks":
        return footer.outcome == "broken"
    if footer.outcome != "failure":
        return False
    if kind.name == "first click ends it":
        return footer.ended_by == "environment" and len(trace.steps) == 1
    if kind.category == "stop_at_wrong_page" or kind.name.startswith("gives up"):
        return footer.ended_by in ("stop", "environment")
    lost = kind.name in ("goes astray", "distracted") and any(isinstance(s.intent.action, Back) for s in trace.steps)
    return footer.ended_by == "max_steps" and not lost


def _write(found: Sequence[tuple[Label, Path]], keep: int, only: Category | None) -> None:
    kept = [label for label in read_labels() if only is not None and label.category != only]
    chosen = list(_spread(found, keep))
    labels = [label for label, _ in chosen] + kept
    for stale in {*(HERE / "episodes").glob("*.jsonl")} - {HERE / label.trace for label in kept}:
        stale.unlink()
    for label, path in chosen:
        _copy(path, HERE / label.trace, HERE / "blobs")
    _drop_unused_blobs(HERE, [HERE / label.trace for label in labels])
    rows = sorted(json.dumps(asdict(label)) for label in labels)
    (HERE / "labels.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(Counter(label.category for label in labels), Counter(label.kind for label in labels))


def read_labels() -> list[Label]:
    path = HERE / "labels.jsonl"
    return [Label(**json.loads(line)) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def _drop_unused_blobs(folder: Path, traces: Sequence[Path]) -> None:
    used = {step.intent.seen.text_blob for path in traces for step in read_trace(path).steps}
    for blob in (folder / "blobs").iterdir():
        if blob.name not in used:
            blob.unlink()


def _spread(found: Sequence[tuple[Label, Path]], keep: int) -> Iterator[tuple[Label, Path]]:
    """At most *keep* of each category, its kinds as even as they can be."""
    for category in ("stop_at_wrong_page", "stuck_midway", "no_reasonable_attempt", "other"):
        by_kind: dict[str, list[tuple[Label, Path]]] = {}
        for one in found:
            if one[0].category == category:
                by_kind.setdefault(one[0].kind, []).append(one)
        left = keep
        while left and any(by_kind.values()):
            for rows in by_kind.values():
                if rows and left:
                    left -= 1
                    yield rows.pop(0)


def _copy_references(run: Path, traces: Sequence[str]) -> None:
    target = HERE / "references"
    for name in traces:
        _copy(run / name, target / "episodes" / Path(name).name, target / "blobs")


def _copy(trace: Path, target: Path, blobs: Path) -> None:
    """The trace and the page texts that it names; lists of keys and prompts, which no analysis reads, stay behind."""
    target.parent.mkdir(parents=True, exist_ok=True)
    blobs.mkdir(exist_ok=True)
    shutil.copyfile(trace, target)
    for step in read_trace(trace).steps:
        blob = step.intent.seen.text_blob
        shutil.copyfile(trace.parent.parent / "blobs" / blob, blobs / blob)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=int, default=24, help="episodes of each category")
    parser.add_argument("--only", choices=[*dict.fromkeys(kind.category for kind in KINDS)], help="one category")
    given = parser.parse_args()
    asyncio.run(record(given.keep, given.only))
