"""A few pairs of each check with the original's verdict, as data that the tests read.

    python -m benchmarks.webarena.fixture pairs.jsonl original.jsonl -o tests/data/webarena/verdicts.jsonl

Of every check as many that the original accepts as others, the untouched reference first.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.webarena.compare import read
from envs.suites.webarena.dates import read_date
from tests.envs.suites.webarena.own_tasks import FILES

EACH = 5
"""So many pairs of each verdict."""


DATED = {task["task_id"] for task in FILES["webarena-verified.json"] if '"format": "date"' in json.dumps(task)}
"""Tasks of WebArena-Verified's shape that ask for a date."""


def holds(row: dict[str, Any]) -> bool:
    """Does its verdict hold on any day? The original takes today's part where a date lacks one."""
    if row["kind"] != "response" or row["task"] not in DATED:
        return True
    answer = row["answer"]
    dates = [read_date(text.lower()) for text in re.findall(r'"([^"\\]*\d[^"\\]*)"', answer)]
    return all(found is None or found.complete() is not None for found in dates)


def chosen(rows: list[tuple[dict[str, Any], Any]], random: Random) -> list[dict[str, Any]]:
    """Of one check."""
    by_verdict: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row, verdict in rows:
        if holds(row):
            by_verdict[json.dumps(verdict)].append(row | {"original": verdict})
    kept: list[dict[str, Any]] = []
    for some in by_verdict.values():
        kept += some if len(some) <= EACH else [some[0], *random.sample(some[1:], EACH - 1)]
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    checks: dict[tuple[Any, ...], list[tuple[dict[str, Any], Any]]] = defaultdict(list)
    for row, verdict in read(given.pairs, given.verdicts):
        checks[row["suite"], row["task"], row["kind"], row.get("check")].append((row, verdict))
    random = Random(0)
    rows = [row for found in checks.values() for row in chosen(found, random)]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} pairs of {len(checks)} checks")


if __name__ == "__main__":
    main()
