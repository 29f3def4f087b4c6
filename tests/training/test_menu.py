"""`mira --help` lists every command and waits for no library that only plays or trains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from agent.cli.app import COMMANDS
from tests.timing import HANG_S

HEAVY = ("torch", "transformers", "playwright", "langgraph", "trl", "sklearn")
CODE = f"""
import json, sys
from agent.cli.app import application
names = [one.name for one in application().registered_commands + application().registered_groups]
print(json.dumps([names, [name for name in {HEAVY} if name in sys.modules]]))
"""


def test_the_menu_of_all_commands_imports_nothing_heavy() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=HANG_S, cwd=root, check=True
    )
    names, imported = json.loads(done.stdout)
    assert imported == []
    assert set(names) == set(COMMANDS)
