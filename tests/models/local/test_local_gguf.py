"""`local:` on a GGUF file: converted once into a checkpoint with plain weights, kept in the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.base import ChatRequest, Message, ModelTruncated, ModelUnavailable
from models.local import gguf_copies
from models.local.gguf_copies import SOURCE, converted, gguf_cache
from models.local.gguf_header import read_header
from models.local.loading import load_generator, read_checkpoint
from models.providers.local import LocalSpec
from models.specs import make_model, parse_spec
from tests.models.local.adapters import save_adapter
from tests.models.local.gguf_files import CONTEXT, write_gguf
from tests.timing import HANG_S
from training.data.rows import Row
from training.engine.checkpoints import load_policy
from training.engine.preflight import check_trainable
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.loop.rollouts import check_policy

torch.set_num_threads(1)
IDS = torch.tensor([[5, 9, 40, 77, 3, 120, 8]])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return gguf_cache()


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    return model.float()(input_ids=IDS).logits[0]


@pytest.mark.parametrize(
    ("kind", "stored", "apart"),
    [("Q8_0", torch.bfloat16, 0.03), ("Q4_0", torch.bfloat16, 0.03), ("F32", torch.float32, 1e-5)],
)
def test_a_gguf_file_is_loaded_with_plain_weights(
    tmp_path: Path, kind: str, stored: torch.dtype, apart: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """Symptom: weights stayed in GGUF's blocks, and every forward pass unpacked them."""
    file = tmp_path / "tiny.gguf"
    expected = logits(write_gguf(file, kind=kind))
    read = read_checkpoint(file)
    assert type(read.model.model.layers[0].mlp.up_proj) is nn.Linear
    assert {weight.dtype for weight in read.model.parameters()} == {torch.float32}, "on a CPU"
    actual = logits(read.model)
    assert (actual - expected).abs().max() < apart * expected.abs().max()
    (copy,) = [folder for folder in gguf_cache().iterdir() if folder.name.startswith("tiny-")]
    assert {weight.dtype for weight in load_file(copy / "model.safetensors").values()} == {stored}
    assert read.tokenizer.chat_template and read.model.config.max_position_embeddings == CONTEXT
    log = capfd.readouterr().err
    assert "converting 1 MB of GGUF once, 1 MB stay in" in log and str(copy) in log and "it/s" not in log


def test_an_answer_ends_where_the_chat_template_ends_a_turn(tmp_path: Path) -> None:
    """Symptom: GGUF files of Gemma and Phi-3 declare another end token than the template writes. Answers ran to the
    limit of tokens, through turns that the model made up."""
    write_gguf(tmp_path / "tiny.gguf", end="<|endoftext|>")
    generator, _ = load_generator(tmp_path / "tiny.gguf", None, "local:tiny.gguf")
    assert set(generator.tokenizer.convert_ids_to_tokens(sorted(generator.ends))) == {"<|endoftext|>", "<|im_end|>"}
    learned, _ = load_policy(converted(tmp_path / "tiny.gguf", "local:tiny.gguf"))
    assert set(learned.generation_config.eos_token_id) == generator.ends, "so does sampling in training"


def test_a_copy_is_made_once_and_needs_neither_package_nor_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    first = converted(tmp_path / "tiny.gguf", "local:tiny.gguf")
    capfd.readouterr()
    monkeypatch.setitem(sys.modules, "gguf", None)  # as if it were not installed
    monkeypatch.setattr(gguf_copies, "_write", None)
    assert converted(tmp_path / "tiny.gguf", "local:tiny.gguf") == first
    (tmp_path / "tiny.gguf").rename(tmp_path / "elsewhere.gguf")
    os.utime(tmp_path / "elsewhere.gguf")
    assert converted(tmp_path / "elsewhere.gguf", "local:elsewhere.gguf") == first, "the same content"
    assert capfd.readouterr().err == ""
    AutoModelForCausalLM.from_pretrained(first, local_files_only=True)
    AutoTokenizer.from_pretrained(first, local_files_only=True)
    assert json.loads((first / SOURCE).read_text())["file"].endswith("tiny.gguf")


def test_a_copy_can_be_trained(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    copy = converted(tmp_path / "tiny.gguf", "local:x", lambda _line: None)
    check_policy(copy)
    check_trainable(copy, Compute(lora=Lora()))
    how = Optimization(learning_rate=1e-3, batch_rows=2)
    rows = [Row((5, 9, number), (7, 8), number, 0) for number in range(4)]
    job = SupervisedJob(start=copy, optimization=how, compute=Compute(cpu=True, threads=1))
    assert (supervised(job, rows, tmp_path / "sft") / "config.json").is_file()


def test_another_file_of_the_same_name_is_another_copy(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    write_gguf(file)
    first = converted(file, "local:x", lambda _line: None)
    write_gguf(file, seed=1)
    second = converted(file, "local:x", lambda _line: None)
    assert first != second
    one, other = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert not torch.equal(one["lm_head.weight"], other["lm_head.weight"])


@pytest.mark.parametrize("place", ["folder", "file"])
async def test_a_spec_names_the_file_or_its_folder(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "model+q8"
    folder.mkdir()
    write_gguf(folder / "Tiny.GGUF")
    named = folder if place == "folder" else folder / "Tiny.GGUF"
    assert parse_spec(f"local:{named}") == LocalSpec(named)
    model = make_model(f"local:{named}")
    try:
        reply = await model.complete(ChatRequest((Message("user", "Hello"),), max_tokens=3))
        assert reply.prompt_token_ids
    except ModelTruncated:
        pass  # a random model does not end its answers
    finally:
        await model.aclose()


@pytest.mark.parametrize(("has", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
@pytest.mark.parametrize("kind", ["Q8_0", "F32"])
def test_quantized_weights_play_in_bfloat16_where_the_cpu_multiplies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, has: bool, dtype: torch.dtype
) -> None:
    write_gguf(tmp_path / "tiny.gguf", kind=kind)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has}, raising=False)
    generator, _ = load_generator(tmp_path / "tiny.gguf", None, "local:x")
    assert generator.model.dtype == (dtype if kind == "Q8_0" else torch.float32)
    assert read_checkpoint(tmp_path / "tiny.gguf").model.dtype == torch.float32, "what is learned from"


def test_an_adapter_is_applied_to_the_copy(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    copy = converted(tmp_path / "tiny.gguf", "local:x", lambda _line: None)
    adapter = save_adapter(copy, tmp_path / "lora", size=0.3)
    spec = parse_spec(f"local:{tmp_path / 'tiny.gguf'}+{adapter}")
    assert spec == LocalSpec(tmp_path / "tiny.gguf", adapter)
    plain, adapted = read_checkpoint(tmp_path / "tiny.gguf"), read_checkpoint(tmp_path / "tiny.gguf", adapter)
    assert (logits(plain.model) - logits(adapted.model)).abs().max() > 0.1


def _missing(folder: Path, _: pytest.MonkeyPatch) -> Path:
    return folder / "gone.gguf"


def _without_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_gguf(folder / "tiny.gguf")
    monkeypatch.setitem(sys.modules, "gguf", None)  # as if it were not installed
    return folder / "tiny.gguf"


def _without_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_gguf(folder / "tiny.gguf")

    def nearly_full(_place: Path) -> SimpleNamespace:
        return SimpleNamespace(total=1, used=1, free=9)

    monkeypatch.setattr(gguf_copies.shutil, "disk_usage", nearly_full)
    return folder / "tiny.gguf"


def _written(name: str, content: bytes) -> Callable[[Path, pytest.MonkeyPatch], Path]:
    def write(folder: Path, _patch: pytest.MonkeyPatch) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def _cut(folder: Path, _patch: pytest.MonkeyPatch, keep: int = 3_000) -> Path:
    write_gguf(folder / "tiny.gguf")
    (folder / "tiny.gguf").write_bytes((folder / "tiny.gguf").read_bytes()[:keep])
    return folder / "tiny.gguf"


def _cut_weights(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    return _cut(folder, patch, 60_000)


def _split(folder: Path, _patch: pytest.MonkeyPatch) -> Path:
    write_gguf(folder / "tiny.gguf", parts=3)
    return folder / "tiny.gguf"


def _two(folder: Path, _patch: pytest.MonkeyPatch) -> Path:
    for name in ("tiny-q4.gguf", "tiny-q8.gguf"):
        write_gguf(folder / name)
    return folder


WRONG = {
    "no package": (_without_package, "a GGUF file needs the package gguf: pip install '.[gguf]' in the clone of Mira"),
    "no room": (_without_room, "make room, or set XDG_CACHE_HOME"),
    "no GGUF": (_written("x.gguf", b"hello, world"), "x.gguf is not a GGUF file"),
    "empty": (_written("x.gguf", b""), "x.gguf is not a GGUF file"),
    "another file": (_written("x.bin", b"GGUF"), "is a file, and no .gguf"),
    "a header that is cut off": (_cut, "tiny.gguf is cut off or damaged"),
    "weights that are cut off": (_cut_weights, "local:"),
    "parts of a model": (_split, "split over 3 GGUF files"),
    "several in a folder": (_two, "holds 2 GGUF files, name one"),
    "no such file": (_missing, "no folder"),
}


@pytest.mark.parametrize(("make", "says"), WRONG.values(), ids=WRONG)
def test_an_error_is_one_line_and_leaves_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path, pytest.MonkeyPatch], Path], says: str
) -> None:
    (tmp_path / "given").mkdir()
    place = make(tmp_path / "given", monkeypatch)
    with pytest.raises(ModelUnavailable) as error:
        make_model(f"local:{place}")
    assert says in str(error.value) and "\n" not in str(error.value)
    cache = gguf_cache()
    left = {path.name for path in cache.iterdir()} if cache.exists() else set[str]()
    assert left <= {"known", "lock"}


def test_the_header_equals_that_of_the_gguf_package(tmp_path: Path) -> None:
    model = write_gguf(tmp_path / "tiny.gguf")
    header = read_header(tmp_path / "tiny.gguf")
    assert (header.architecture, header.quantized, header.parts) == ("qwen2", True, 1)
    assert header.elements == sum(weight.numel() for weight in model.parameters())
    write_gguf(tmp_path / "plain.gguf", kind="F32")
    assert not read_header(tmp_path / "plain.gguf").quantized


CONVERT = """
import sys
from pathlib import Path
from models.local.gguf_copies import converted
print(converted(Path(sys.argv[1]), "local:x", lambda line: print(line, file=sys.stderr)))
"""


@pytest.mark.slow
def test_processes_that_need_the_same_copy_make_it_once(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    command = [sys.executable, "-c", CONVERT, str(tmp_path / "tiny.gguf")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ended = [process.communicate(timeout=HANG_S) for process in started]
    assert len({out for out, _ in ended}) == 1
    assert sum("converting" in err for _, err in ended) == 1
