"""Frozen weights in bfloat16: half the memory, equal outputs and gradients, and nothing of an adapter is rounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from models.embedded import embedded_dir
from tests.training.engine.families import save_family
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.data.packing import pack, sum_by_row
from training.engine import stage_jobs
from training.engine.annotate import completion_token_logprobs, score_completions
from training.engine.checkpoints import load_policy, with_adapter
from training.engine.critic_model import Critic
from training.engine.half_weights import copy_trained_weights, hold_frozen_in_bfloat16, is_held_in_bfloat16
from training.engine.memory_plan import Sharing
from training.engine.packed_model import precision
from training.engine.scoring import score
from training.engine.settings import Compute, Lora, Optimization
from training.engine.shared_base_lora import SharedBaseModels
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.stage_memory import stage_peaks

torch.set_num_threads(1)
ROWS = rows_of(6)
HALF = Compute(cpu=True, threads=1, bf16=True)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A multimodal Gemma 3, whose output layer is its embedding."""
    return save_family("gemma3", tmp_path_factory.mktemp("gemma") / "start")


def stored(model: nn.Module) -> int:
    """Bytes of the weights."""
    return sum(weight.numel() * weight.element_size() for weight in model.parameters())


def learned(model: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    packed = pack(ROWS, range(len(ROWS)))
    with precision(CPU, bf16=True):
        outputs = sum_by_row(completion_token_logprobs(model, packed), packed)
    outputs.sum().backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    return outputs.detach(), gradients


def adapted(start: Path) -> Any:
    torch.manual_seed(0)
    model = with_adapter(load_policy(start)[0], Lora(rank=4))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(weight, std=0.1)
    return model


def test_an_adapter_learns_the_same_to_the_bit(start: Path) -> None:
    whole, half = adapted(start), hold_frozen_in_bfloat16(adapted(start), HALF)
    outputs, gradients = learned(half)
    expected, their_gradients = learned(whole)
    assert torch.equal(outputs, expected)
    assert gradients.keys() == their_gradients.keys()
    assert all(torch.equal(gradients[name], their_gradients[name]) for name in gradients)
    layers, others = stored(whole.get_base_model().model.language_model.layers), stored(whole)
    assert others - stored(half) > 0.4 * layers, "linear layers are half as large"


def test_scores_are_the_same_to_the_bit(start: Path) -> None:
    expected = score_completions(load_policy(start)[0].eval(), ROWS, 200, bf16=True)
    assert score("actions", start, ROWS, HALF) == expected
    assert expected != score("actions", start, ROWS, HALF.model_copy(update={"bf16": False}))


@pytest.mark.parametrize("family", ["gemma3", "llama"])
def test_frozen_weights_are_read_as_they_are_held(family: str, tmp_path: Path) -> None:
    """Every process of eight read 12 billion parameters in float32 first: 380 GB of main memory."""
    folder = save_family(family, tmp_path / "start")
    held = hold_frozen_in_bfloat16(load_policy(folder)[0], HALF, frozen=True)
    read = load_policy(folder, half=True)[0]
    weights = dict(read.named_parameters())
    assert weights.keys() == dict(held.named_parameters()).keys() and is_held_in_bfloat16(read)
    for name, weight in held.named_parameters():
        assert weights[name].dtype == weight.dtype and torch.equal(weights[name], weight), name
    assert {weight.dtype for weight in load_policy(folder)[0].parameters()} == {torch.float32}, "as before"
    critic = Critic.from_policy(folder, half=True)
    assert is_held_in_bfloat16(critic.trunk) and not is_held_in_bfloat16(critic.head)


_LOADING = """
import sys, threading
import torch, transformers
from pathlib import Path
from training.engine.checkpoints import load_policy
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.settings import Compute
from training.loop.loop import Loop
torch.set_num_threads(1)

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

load_policy(Path(sys.argv[2]))  # imports what a model needs
before, peak, ended = resident(), 0, threading.Event()

def watch():
    global peak
    while not ended.wait(0.002):
        peak = max(peak, resident())

watcher = threading.Thread(target=watch)
watcher.start()
model, _ = load_policy(Path(sys.argv[1]), half=sys.argv[3] == "half")
hold_frozen_in_bfloat16(model, Compute(cpu=True, bf16=True), frozen=True)
for weight in model.parameters():
    weight.sum()  # a weight that is a part of its file is read when it is used
ended.set()
watcher.join()
print(max(peak, resident()) - before)
"""


def test_the_planned_main_memory_is_what_a_process_takes(tmp_path: Path) -> None:
    config = LlamaConfig(
        vocab_size=1_986,
        hidden_size=1_024,
        intermediate_size=2_048,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=8,
    )
    model: Any = LlamaForCausalLM(config)
    model.to(torch.bfloat16).save_pretrained(tmp_path / "start")
    AutoTokenizer.from_pretrained(embedded_dir()).save_pretrained(tmp_path / "start")

    def taken(how: str) -> int:
        command = [sys.executable, "-c", _LOADING, str(tmp_path / "start"), str(embedded_dir()), how]
        return int(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)

    def planned(*, bf16: bool) -> int:
        compute = HALF.model_copy(update={"lora": Lora(rank=4), "bf16": bf16, **SHORT})
        return stage_peaks(config, compute, critics=False, sharing=TWO)[0].loaded

    half, whole = planned(bf16=True), planned(bf16=False)
    assert 0.9 * half < taken("half") < 1.3 * half < 0.8 * whole
    assert taken("float32") > 0.9 * whole, "as it was"


SHORT = {"max_tokens": 64, "pack_tokens": 64}
TWO = Sharing(processes=2)


def test_weights_that_are_trained_stay_in_float32(start: Path) -> None:
    assert not is_held_in_bfloat16(
        hold_frozen_in_bfloat16(load_policy(start)[0], HALF.model_copy(update={"bf16": False}))
    )
    model = hold_frozen_in_bfloat16(load_policy(start)[0], HALF)
    trained = {weight.dtype for weight in model.parameters() if weight.requires_grad}
    assert trained == {torch.float32} and is_held_in_bfloat16(model), "its encoder is frozen"
    models = SharedBaseModels(start, Lora(rank=4), compute=HALF)
    for part in ("actor", "potential", "value"):
        module = models.use(part, start)
        assert {weight.dtype for weight in module.parameters() if weight.requires_grad} == {torch.float32}
        assert is_held_in_bfloat16(module)


@pytest.mark.parametrize("kind", ["actor", "value"])
def test_an_adapter_is_merged_into_the_exact_weights(start: Path, tmp_path: Path, kind: Any) -> None:
    job = StageJob(
        kind=kind,
        start=start,
        optimization=Optimization(learning_rate=1e-5, batch_rows=6, epochs=3),
        compute=HALF.model_copy(update={"lora": Lora(rank=4)}),
    )
    column = {Column.TARGET: [0.0, 1.0] * 3}
    columns = {Column.ADVANTAGE: [1.0, -1.0] * 3, Column.REFERENCE: [-30.0] * 6} if kind == "actor" else column
    write_job(tmp_path, job, ROWS, columns)
    out = launch(tmp_path)
    read = load_policy(out)[0] if kind == "actor" else Critic.load(out)
    before = load_policy(start)[0] if kind == "actor" else Critic.from_policy(start)
    weights, first = dict(read.named_parameters()), dict(before.named_parameters())
    assert not is_held_in_bfloat16(read)
    moved = {name: (weights[name] - first[name]).abs().max().item() for name in weights if "q_proj" in name}
    language = [change for name, change in moved.items() if "vision" not in name]
    assert all(0 < change < 3e-4 for change in language), "rounding to bfloat16 alone would change more"


def test_checkpoints_of_an_adapters_stage_hold_what_is_trained(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A critic's checkpoint had the frozen trunk in it: 48 GB at 12 billion parameters, every five minutes."""
    sizes: list[int] = []
    clean_up = stage_jobs.shutil.rmtree

    def measure(path: Path, **options: Any) -> None:
        sizes.extend(file.stat().st_size for file in Path(path).rglob("*.safetensors"))
        clean_up(path, **options)

    monkeypatch.setattr(stage_jobs.shutil, "rmtree", measure)
    compute = HALF.model_copy(update={"lora": Lora(rank=4), "save_minutes": 1e-9})
    how = Optimization(learning_rate=1e-3, batch_rows=3)
    write_job(
        tmp_path,
        StageJob(kind="value", start=start, optimization=how, compute=compute),
        ROWS,
        {Column.TARGET: [0.0, 1.0] * 3},
    )
    launch(tmp_path)
    assert sizes and max(sizes) < 0.2 * (start / "model.safetensors").stat().st_size


def test_trained_weights_are_copied_by_name(start: Path) -> None:
    trained, exact = adapted(start), with_adapter(load_policy(start)[0], Lora(rank=4))
    copy_trained_weights(hold_frozen_in_bfloat16(trained, HALF), exact)
    assert torch.equal(learned(exact)[0], learned(adapted(start))[0])
