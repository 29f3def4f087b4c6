"""Loading and calling a model prints nothing: no deprecation warning of a library reaches the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from models.embedded import embedded_dir
from tests.models.local.adapters import save_adapter
from tests.timing import HANG_S

ROOT = Path(__file__).parents[2]
ASK = """
import asyncio, sys
from models.base import ChatRequest, Message
from models.specs import make_model

prompt = Message("user", "Goal: Click on Save.\\nPage:\\n[1] button Save")
print(asyncio.run(make_model(sys.argv[1]).complete(ChatRequest((prompt,)))).text)
"""


@pytest.mark.parametrize("with_adapter", [False, True], ids=["embedded", "adapter"])
def test_calling_a_local_model_prints_no_warning(tmp_path: Path, with_adapter: bool) -> None:
    adapter = save_adapter(embedded_dir(), tmp_path / "lora") if with_adapter else None
    spec = f"local:{embedded_dir()}+{adapter}" if adapter else "embedded"
    done = subprocess.run(
        [sys.executable, "-c", ASK, spec], capture_output=True, text=True, timeout=HANG_S, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
