"""Tests run beside each other, so PyTorch computes in one thread at the start of each, whatever one has set."""

from __future__ import annotations

import os

import pytest
import torch


@pytest.mark.parametrize("time", ["first", "second"])
def test_threads_that_a_test_sets_end_with_it(time: str) -> None:
    assert torch.get_num_threads() == 1, time
    torch.set_num_threads(2)


def test_waiting_threads_sleep() -> None:
    assert os.environ["OMP_WAIT_POLICY"]
