"""Loading an untrusted checkpoint runs no code of its author, with any reader."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from envs.core.errors import BadInput
from models.base import ModelUnavailable
from models.embedded import embedded_dir
from models.local.loading import load_generator, read_checkpoint
from models.local.safe_loading import adapter_problem, weights_problem
from tests.models.local.adapters import save_adapter
from tests.timing import HANG_S
from training.engine.checkpoints import load_policy
from training.engine.critic_model import Critic
from training.grpo.run import load_start
from training.grpo.vision_models import load_vision_model
from training.loop.rollouts import check_policy
from training.serving.export import export

ONE_SHARD = {"metadata": {"total_size": 1}}


class Evil:
    """Unpickled, it writes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {shlex.quote(str(self.mark))}",)  # pyright: ignore[reportDeprecated]  # the payload


def as_pickle(folder: Path, name: str, mark: Path) -> None:
    """Replaces the weights in *folder*."""
    for path in folder.glob("*.safetensors"):
        path.unlink()
    torch.save({"model.embed_tokens.weight": Evil(mark)}, folder / name)


def legacy_pickle(folder: Path, mark: Path) -> None:
    as_pickle(folder, "pytorch_model.bin", mark)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Evil(mark)}))


def sharded(folder: Path, index: str, shard: str, mark: Path) -> None:
    as_pickle(folder, Path(shard).name, mark)
    weight_map = dict.fromkeys(load_file(embedded_dir() / "model.safetensors"), shard)
    (folder / index).write_text(json.dumps({**ONE_SHARD, "weight_map": weight_map}))


def named_by_config(folder: Path, name: str, mark: Path) -> None:
    as_pickle(folder, "adapter_model.bin", mark)
    stored = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**stored, "transformers_weights": name}))


def adapter_inside(folder: Path, mark: Path) -> None:
    """transformers reads an adapter beside the weights automatically."""
    save_adapter(embedded_dir(), folder / "own")
    for path in (folder / "own").iterdir():
        shutil.move(path, folder / path.name)
    torch.save({"a": Evil(mark)}, folder / "adapter_model.bin")
    (folder / "adapter_model.safetensors").unlink()


def adapters_base(folder: Path, mark: Path) -> None:
    """transformers reads the base that an adapter in a folder names, instead of the folder."""
    other = folder.with_name("other")
    shutil.copytree(folder, other)
    as_pickle(other, "pytorch_model.bin", mark)
    save_adapter(embedded_dir(), folder / "own")
    for path in (folder / "own").iterdir():
        shutil.move(path, folder / path.name)
    stored = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**stored, "base_model_name_or_path": str(other)}))


HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    "bin": lambda folder, mark: as_pickle(folder, "pytorch_model.bin", mark),
    "legacy bin": legacy_pickle,
    "pt": lambda folder, mark: as_pickle(folder, "model.pt", mark),
    "pth": lambda folder, mark: as_pickle(folder, "consolidated.00.pth", mark),
    "shards": lambda folder, mark: sharded(folder, "pytorch_model.bin.index.json", "pytorch_model-1.bin", mark),
    "safe index": lambda folder, mark: sharded(folder, "model.safetensors.index.json", "pytorch_model-1.bin", mark),
    "index, no ending": lambda folder, mark: sharded(folder, "model.safetensors.index.json", "weights", mark),
    "index, outside": lambda folder, mark: sharded(
        folder, "model.safetensors.index.json", f"../{folder.name}/x.bin", mark
    ),
    "config": lambda folder, mark: named_by_config(folder, "adapter_model.bin", mark),
    "config, index": lambda folder, mark: (
        sharded(folder, "other.safetensors.index.json", "x.bin", mark),
        named_by_config(folder, "other.safetensors.index.json", mark),
    )[0],
    "adapter inside": adapter_inside,
    "base of an adapter inside": adapters_base,
}
READERS: dict[str, Callable[[Path], object]] = {
    "local": lambda folder: load_generator(folder, None, f"local:{folder}"),
    "training start": load_policy,
    "phase loop": check_policy,
    "critic": Critic.from_policy,
    "grpo": lambda folder: load_start(folder, vision=False),
    "grpo that sees": load_vision_model,
    "export": lambda folder: export(folder, None, folder.with_name("out")),
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    shutil.copytree(embedded_dir(), tmp_path / "theirs")
    return tmp_path / "theirs"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_pickled_weights_are_refused(tmp_path: Path, checkpoint: Path, kind: str, reader: str) -> None:
    mark = tmp_path / "ran"
    HOSTILE[kind](checkpoint, mark)
    with pytest.raises((BadInput, ModelUnavailable)) as refused:
        READERS[reader](checkpoint)
    stored = str(refused.value)
    assert "\n" not in stored and "safetensors" in stored and str(tmp_path) in stored
    assert not mark.exists()


def test_an_unsafe_reader_runs_pickled_code(tmp_path: Path, checkpoint: Path) -> None:
    """The negative control."""
    mark = tmp_path / "ran"
    as_pickle(checkpoint, "pytorch_model.bin", mark)
    torch.load(checkpoint / "pytorch_model.bin", weights_only=False)
    assert mark.exists()


def test_an_index_of_safetensors_can_name_a_pickle(tmp_path: Path, checkpoint: Path) -> None:
    """The negative control: transformers reads shards by suffix, regardless of `use_safetensors`."""
    from transformers import AutoModelForCausalLM

    sharded(checkpoint, "model.safetensors.index.json", "x.bin", tmp_path / "ran")
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        AutoModelForCausalLM.from_pretrained(checkpoint, use_safetensors=True, local_files_only=True)


def test_a_pickled_adapter_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    mark = tmp_path / "ran"
    adapter = save_adapter(checkpoint, tmp_path / "adapter")
    as_pickle(adapter, "adapter_model.bin", mark)
    for read in (
        lambda: read_checkpoint(checkpoint, adapter),
        lambda: load_policy(adapter),
        lambda: check_policy(adapter),
        lambda: Critic.from_policy(adapter),
        lambda: export(checkpoint, adapter, tmp_path / "out", kind="adapter"),
    ):
        with pytest.raises((BadInput, ModelUnavailable)) as refused:
            read()
        assert "adapter_model.bin" in str(refused.value) and "\n" not in str(refused.value)
    assert not mark.exists()


def test_the_suggested_command_converts(tmp_path: Path, checkpoint: Path) -> None:
    tensors = load_file(checkpoint / "model.safetensors")
    (checkpoint / "model.safetensors").unlink()
    torch.save(tensors, checkpoint / "pytorch_model.bin")
    problem = weights_problem(checkpoint)
    assert problem is not None
    run_named(problem)
    assert weights_problem(checkpoint) is None
    assert read_checkpoint(checkpoint).model.num_parameters() > 0

    adapter = save_adapter(checkpoint, tmp_path / "adapter")
    torch.save(load_file(adapter / "adapter_model.safetensors"), adapter / "adapter_model.bin")
    (adapter / "adapter_model.safetensors").unlink()
    problem = adapter_problem(adapter)
    assert problem is not None
    run_named(problem)
    assert adapter_problem(adapter) is None


def run_named(problem: str) -> None:
    _, _, command = problem.partition("author: ")
    words = shlex.split(command)
    assert words[0] == "python"
    subprocess.run([sys.executable, *words[1:]], check=True, timeout=HANG_S, capture_output=True)


def test_sharded_safetensors_are_read(tmp_path: Path) -> None:
    """Pickles are refused, not indexes."""
    read = read_checkpoint(embedded_dir())
    read.model.save_pretrained(tmp_path / "sharded", max_shard_size="1MB")
    read.tokenizer.save_pretrained(tmp_path / "sharded")
    assert (tmp_path / "sharded" / "model.safetensors.index.json").is_file()
    assert read_checkpoint(tmp_path / "sharded").model.num_parameters() == read.model.num_parameters()


CODE = "open({mark!r}, 'w').close()\n"


def with_code(checkpoint: Path, file: str, mark: Path) -> None:
    """Lets *file* of *checkpoint* name code of its own, which writes *mark*."""
    for module in ("modeling_evil", "tokenization_evil", "processing_evil", "configuration_evil"):
        (checkpoint / f"{module}.py").write_text(CODE.format(mark=str(mark)))
    auto_map = {
        "AutoConfig": "configuration_evil.EvilConfig",
        "AutoModelForCausalLM": "modeling_evil.Evil",
        "AutoModel": "modeling_evil.Evil",
        "AutoModelForImageTextToText": "modeling_evil.Evil",
        "AutoTokenizer": ["tokenization_evil.Evil", "tokenization_evil.Evil"],
        "AutoProcessor": "processing_evil.Evil",
    }
    path = checkpoint / file
    stored = json.loads(path.read_text()) if path.exists() else {}
    model_type = {"model_type": "evil"} if file == "config.json" else {}
    path.write_text(json.dumps({**stored, **model_type, "auto_map": auto_map, "tokenizer_class": "Evil"}))


@pytest.mark.parametrize(
    "answer",
    [pytest.param("", id="no terminal", marks=pytest.mark.heavy), pytest.param("y\n" * 60, id="yes to everything")],
)
def test_code_in_a_checkpoint_is_not_run(tmp_path: Path, answer: str) -> None:
    """By default transformers asks on a terminal; `trust_remote_code` is always false. One process reads all three."""
    marks: dict[str, Path] = {}
    for file in ("config.json", "tokenizer_config.json", "processor_config.json"):
        shutil.copytree(embedded_dir(), tmp_path / file)
        marks[file] = tmp_path / f"ran-{file}"
        with_code(tmp_path / file, file, marks[file])
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.models.local.test_safe_loading import READERS\n"
        "for checkpoint in sys.argv[1:]:\n"
        "    for read in READERS.values():\n"
        "        try:\n            read(Path(checkpoint))\n"
        "        except Exception as error:\n            print(error)\n"
        "    print('read', checkpoint)\n"
    )
    command = [sys.executable, "-c", code, *(str(tmp_path / file) for file in marks)]
    done = subprocess.run(command, check=True, timeout=HANG_S, input=answer, capture_output=True, text=True)
    assert [file for file, mark in marks.items() if mark.exists()] == [], done.stdout
    assert sum(line.startswith("read ") for line in done.stdout.splitlines()) == len(marks)


def test_a_chat_template_runs_in_a_sandbox(tmp_path: Path, checkpoint: Path) -> None:
    mark = tmp_path / "ran"
    template = (
        "{{ ''.__class__.__mro__[1].__subclasses__() }}"
        "{{ cycler.__init__.__globals__.os.system('touch " + str(mark) + "') }}"
    )
    stored = json.loads((checkpoint / "tokenizer_config.json").read_text())
    (checkpoint / "tokenizer_config.json").write_text(json.dumps({**stored, "chat_template": template}))
    tokenizer = read_checkpoint(checkpoint).tokenizer
    with pytest.raises(Exception, match=r"unsafe|undefined|not safely"):
        tokenizer.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
    assert not mark.exists()
