"""The task files that the recorded verdicts of `tests/data/webarena` are made from.

python -m benchmarks.webarena.own FOLDER
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.envs.suites.webarena.own_tasks import FILES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, entries in FILES.items():
        (folder / name).write_text(json.dumps(entries), encoding="utf-8")


if __name__ == "__main__":
    main()
