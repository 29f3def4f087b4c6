"""How long `mira analyze` takes for a thousand failed traces of fifteen steps, each with reference successes.

Makes them from recorded ones: steps of the labelled failures, cut or repeated to length, as episodes of the same tasks,
and `--references` copies of each success. Prints one JSON line.

    python benchmarks/analysis_speed.py --traces 1000 --steps 15 --references 4
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from envs.core.trace import Commit, Intent, Line
from envs.core.trace_store import Trace, read_trace

RECORDED = Path(__file__).parent.parent / "tests" / "data" / "failures"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--references", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failed, successes = Path(folder) / "failed", Path(folder) / "successes"
        make(failed, RECORDED, options.traces, options.steps)
        make(successes, RECORDED / "references", options.references * 40, None)
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "agent.cli", "analyze", str(failed), "--references", str(successes), "--json"],
            capture_output=True,
            check=True,
        )
        seconds = time.perf_counter() - begun
    rows = json.loads(done.stdout)["analyses"]
    print(
        json.dumps(
            {
                "traces": len(rows),
                "steps": sum(row["steps"] for row in rows) / len(rows),
                "references": sum(row["references"] for row in rows) / len(rows),
                "seconds": round(seconds, 1),
                "traces_per_second": round(len(rows) / seconds, 1),
                "cores": os.cpu_count(),
            }
        )
    )


def make(folder: Path, recorded: Path, count: int, steps: int | None) -> None:
    """*count* traces in *folder*, the recorded ones in turn, each of *steps* steps or as long as it was."""
    (folder / "episodes").mkdir(parents=True)
    (folder / "blobs").symlink_to((recorded / "blobs").resolve(), target_is_directory=True)
    traces = [read_trace(path) for path in sorted((recorded / "episodes").glob("*.jsonl"))]
    traces = [trace for trace in traces if trace.steps and trace.footer is not None]
    for number, trace in zip(range(count), cycle(traces), strict=False):
        name = f"{number:05d}-{trace.header.episode_id}"
        lines = [line.model_dump_json() for line in _lines(trace, name, steps)]
        (folder / "episodes" / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _lines(trace: Trace, name: str, steps: int | None) -> Iterator[Line]:
    yield trace.header.model_copy(update={"episode_id": name})
    yield from trace.plans
    for number, (intent, commit) in enumerate(_stretched(trace, steps), 1):
        yield intent.model_copy(update={"step": number})
        if commit is not None:
            yield commit.model_copy(update={"step": number})
    assert trace.footer is not None
    yield trace.footer


def _stretched(trace: Trace, steps: int | None) -> Sequence[tuple[Intent, Commit | None]]:
    """The steps but the last, again and again, and the last, which may be a Stop."""
    if steps is None or len(trace.steps) < 2:
        return trace.steps
    *body, end = trace.steps
    return [*(step for step, _ in zip(cycle(body), range(steps - 1), strict=False)), end]


if __name__ == "__main__":
    main()
