"""The core alone runs API models and the embedded model, without torch, transformers or scipy."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import venv
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from packaging.requirements import Requirement

from agent.cli.extras import EXTRAS
from models.embedded import embedded_dir
from tests.agent.shop import Shop
from tests.light_install import (
    ROOT,
    canonical,
    core_closure,
    light_environ,
    light_mira,
    missing_modules,
    project,
    without_modules,
)
from tests.models.providers.servers import Reply, misbehaving_server
from tests.sampled import sampled

HEAVY = ("torch", "transformers", "scipy", "scikit-learn", "pandas", "pyarrow", "safetensors", "accelerate", "onnx")
AGENTLAB = ROOT / "tests" / "data" / "importing" / "agentlab"
BUY = 'do(action="Click", element="2")'
STOP = 'exit(message="done")'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("light")


@pytest.fixture(scope="module")
def environ(folder: Path) -> dict[str, str]:
    return light_environ(folder)


@pytest.fixture(scope="module")
def open_shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api_run(folder: Path, environ: dict[str, str], open_shop: Shop) -> AsyncIterator[Path]:
    """A run of an open task on an API model."""
    async with misbehaving_server([Reply(BUY), Reply(STOP)]) as server:
        words = ["run", "Order", "--url", open_shop.url, "--policy", "openai:m", "--base-url", server.openai_url]
        roles = ["--planner", "none", "--judge", "none", "--out", "api", "--json"]
        done = await asyncio.to_thread(light_mira, folder, *words, *roles, environ=environ)
    assert done.returncode == 0, done.stderr
    yield folder / json.loads(done.stdout)["folder"]


@pytest.fixture(scope="module")
def embedded_run(folder: Path, environ: dict[str, str]) -> Path:
    """A run of two tasks by the embedded model; one is likely to fail, so that there is something to analyze."""
    words = ["run", "--suite", "miniwob", "--tasks", "click-test-2,choose-list", "--seeds", "1", "--out", "embedded"]
    done = light_mira(folder, *words, "--json", environ=environ)
    assert done.returncode == 0, done.stderr
    return folder / json.loads(done.stdout)["folder"]


def test_the_core_brings_nothing_heavy() -> None:
    assert core_closure() >= {"onnxruntime", "tokenizers", "openai", "playwright"}
    assert core_closure().isdisjoint(HEAVY)
    assert {"torch", "transformers", "scipy", "sklearn", "safetensors"} <= set(missing_modules())


def test_the_listed_extras_are_those_of_the_project() -> None:
    declared: dict[str, list[str]] = project()["optional-dependencies"]
    assert {extra.name for extra in EXTRAS} == set(declared) - {"dev"}
    for extra in EXTRAS:
        assert {canonical(name) for name in extra.packages} == _names(declared, extra.name), extra.name


def _names(declared: dict[str, list[str]], extra: str) -> set[str]:
    """Distributions of an extra, those of the extras that it includes among them."""
    packages: set[str] = set()
    for line in declared[extra]:
        requirement = Requirement(line)
        if canonical(requirement.name) == project()["name"]:
            packages |= set[str]().union(*(_names(declared, package) for package in requirement.extras))
        else:
            packages.add(canonical(requirement.name))
    return packages


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_an_api_model_needs_no_torch(api_run: Path, open_shop: Shop) -> None:
    assert open_shop.orders == ["who="]
    assert list((api_run / "episodes").glob("*.jsonl"))


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "words",
    sampled(
        [
            pytest.param(["show", "EMBEDDED"], id="show"),
            pytest.param(["show", "TRACE"], id="show a trace"),
            pytest.param(["report", "EMBEDDED", "API", "--out", "report.html"], id="report"),
            pytest.param(["analyze", "EMBEDDED"], id="analyze"),
            pytest.param(["quality", "EMBEDDED"], id="quality"),
            pytest.param(["compare", "EMBEDDED", "EMBEDDED"], id="compare"),
            pytest.param(["eval", "EMBEDDED"], id="eval"),
            pytest.param(["eval", "--phases", "one=EMBEDDED", "--out", "maps.html"], id="eval phases"),
            pytest.param(["eval", "--arm", "one=EMBEDDED", "--arm", "two=EMBEDDED"], id="eval arms"),
            pytest.param(["replay", "TRACE"], id="replay"),
            pytest.param(["import", "agentlab", str(AGENTLAB), "--out", "imported"], id="import"),
            pytest.param(["tasks", "--suite", "miniwob"], id="tasks of MiniWoB++"),
            pytest.param(["tasks", "--suite", "sites"], id="tasks of the sites"),
            pytest.param(["models"], id="models"),
            pytest.param(["doctor"], id="doctor"),
            pytest.param(["--help"], id="help"),
        ],
        every=3,
    ),
)
async def test_a_core_command_works_without_the_extras(
    folder: Path, environ: dict[str, str], embedded_run: Path, api_run: Path, words: list[str]
) -> None:
    (trace,) = (embedded_run / "episodes").glob("*click-test-2*.jsonl")
    places = {"EMBEDDED": str(embedded_run), "API": str(api_run), "TRACE": str(trace)}
    filled = [places.get(word, word.replace("EMBEDDED", places["EMBEDDED"])) for word in words]
    done = light_mira(folder, *filled, environ=environ)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert done.stdout or "--out" in words


@pytest.mark.browser
def test_doctor_lists_what_is_not_installed(folder: Path, environ: dict[str, str]) -> None:
    done = light_mira(folder, "doctor", "--json", environ=environ)
    assert json.loads(done.stdout)["missing"] == {extra.name: [*extra.packages] for extra in EXTRAS}


@pytest.mark.browser
@pytest.mark.slow
def test_the_demo_needs_no_torch(folder: Path, environ: dict[str, str]) -> None:
    done = light_mira(folder, "demo", "--seeds", "0", "--out", "demo", "--json", environ=environ)
    assert done.returncode == 0, done.stderr
    outcomes = [episode["outcome"] for episode in json.loads(done.stdout)["episodes"]]
    assert outcomes == ["success"] * 10


@pytest.mark.parametrize(
    ("words", "extra"),
    sampled(
        [
            pytest.param(["--policy", "local:CHECKPOINT"], "local", id="local"),
            pytest.param(["--policy", "local:CHECKPOINT+ADAPTER"], "adapters", id="adapter"),
            pytest.param(["--policy", "local:FILE"], "gguf", id="GGUF"),
            pytest.param(["--policy", "embedded", "--planner", "local:CHECKPOINT"], "local", id="local planner"),
            pytest.param(["train", "mira", "-c", "smoke", "-o", "trained"], "training", id="train"),
            pytest.param(["train", "sft", "runs", "-o", "trained"], "training", id="train sft"),
            pytest.param(["train", "show", "trained"], "training", id="train show"),
            pytest.param(["train", "grpo", "examples.jsonl", "-o", "trained"], "training", id="train grpo"),
            pytest.param(["export", "CHECKPOINT", "--to", "served"], "local", id="export"),
            pytest.param(["sites", "build", "--sites", "map"], "sites", id="sites"),
        ]
    ),
)
def test_a_missing_extra_is_one_line_that_names_it(
    environ: dict[str, str], tmp_path: Path, words: list[str], extra: str
) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}", encoding="utf-8")
    places = {"CHECKPOINT": embedded_dir(), "ADAPTER": tmp_path / "adapter", "FILE": tmp_path / "tiny.gguf"}
    for name, place in places.items():
        words = [word.replace(name, str(place)) for word in words]
    if words[0].startswith("--"):
        words = ["run", "--suite", "miniwob", "--tasks", "click-test", "--out", str(tmp_path), *words]
    done = light_mira(tmp_path, *words, environ=environ)
    problem = [line for line in done.stderr.splitlines() if line.startswith("mira: ")]
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert len(problem) == 1
    assert problem[0].endswith(f": pip install '.[{extra}]' in the clone of Mira"), problem


def test_an_adapter_without_peft_is_one_line(tmp_path: Path) -> None:
    spec = f"local:{embedded_dir()}+{tmp_path}"
    environ = without_modules(tmp_path, {"peft": ["peft"]})
    done = light_mira(tmp_path, "run", "--suite", "miniwob", "--policy", spec, "--out", "runs", environ=environ)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"mira: {spec} needs peft: pip install '.[adapters]' in the clone of Mira"


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_wheel_in_an_empty_environment_plays_the_demo(tmp_path: Path) -> None:
    """With the index that pip knows here; outside the source tree."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"

    def call(*words: str) -> str:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=600, cwd=tmp_path, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("mira_web-*.whl")
    call(str(python), "-m", "pip", "install", "--quiet", str(wheel))
    installed = {
        canonical(package["name"]) for package in json.loads(call(str(python), "-m", "pip", "list", "--format=json"))
    }
    assert "mira-web" in installed
    assert installed.isdisjoint(HEAVY)
    output = call(str(tmp_path / "venv" / "bin" / "mira"), "demo", "--seeds", "0", "--json")
    assert [episode["outcome"] for episode in json.loads(output)["episodes"]] == ["success"] * 10
