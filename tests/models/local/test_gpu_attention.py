"""Kernels of attention on a GPU. A process of its own, because the setting is the process's."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ASKED = "torch.backends.cuda.cudnn_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()"
ON_A_GPU = """\
import json, torch
torch.cuda.is_available = lambda: True
from accelerate import PartialState
PartialState.device = torch.device("cpu")
from training.engine.checkpoints import select_device
from training.engine.settings import Compute
{prepare}
print(json.dumps([{asked}]))
"""


@pytest.mark.parametrize(
    ("prepare", "cudnn"),
    [("select_device(Compute(cpu=True))", True), ("select_device(Compute())", False)],
    ids=["on the CPU", "on a GPU"],
)
def test_training_on_a_gpu_leaves_cudnn_out_of_attention(prepare: str, *, cudnn: bool) -> None:
    code = ON_A_GPU.format(prepare=prepare, asked=ASKED)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True)
    assert json.loads(done.stdout) == [cudnn, True]
