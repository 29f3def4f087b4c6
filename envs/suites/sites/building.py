"""Builds the golden state of one site, in a process of its own: `python -m envs.suites.sites.building NAME FOLDER`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import time_machine

from envs.suites.sites.clock import NOW
from envs.suites.sites.serving import load

SEED = 20_260_316


def main(arguments: list[str]) -> None:
    name, folder = arguments[0], Path(arguments[1])
    random.seed(SEED)
    with time_machine.travel(NOW, tick=False):
        load(name).build(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
