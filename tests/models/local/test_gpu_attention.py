"""Kernels of attention on a GPU. A process of its own, because the setting is the process's."""

from __future__ import annotations

import json
import subprocess
import sys

ON_A_GPU = """\
import json, torch
torch.cuda.is_available = lambda: True
from accelerate import PartialState
PartialState.device = torch.device("cpu")
from training.engine.checkpoints import select_device
from training.engine.settings import Compute
states = []
for compute in (Compute(cpu=True), Compute()):
    select_device(compute)
    states.append([torch.backends.cuda.cudnn_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()])
print(json.dumps(states))
"""


def test_training_on_a_gpu_leaves_cudnn_out_of_attention() -> None:
    done = subprocess.run([sys.executable, "-c", ON_A_GPU], stdout=subprocess.PIPE, check=True, text=True)
    assert json.loads(done.stdout) == [[True, True], [False, True]]
