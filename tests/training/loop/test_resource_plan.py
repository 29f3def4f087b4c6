"""`mira train plan`, and the checkpoints that stay after a phase."""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from tests.mira_command import mira
from tests.training.engine.families import save_family
from training.configs import HERE, config_file
from training.engine.memory_plan import GB, Peak, Sharing
from training.engine.stage_memory import stage_peaks
from training.loop.loop import Loop
from training.loop.resource_plan import (
    TrainingPlan,
    architectures,
    launched_processes,
    model_config,
    plan_fine_tuning,
    plan_training,
    sharing_of,
    zero_stage,
)
from training.loop.settings import LoopSettings, load_settings
from training.loop.sft import SupervisedSettings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Adapters on a tiny Gemma 3 in two processes."""
    start = save_family("gemma3", tmp_path / "start")
    path = tmp_path / "own.toml"
    path.write_text(
        f'start = "{start}"\nlauncher = ["accelerate", "launch", "--num_processes", "2", "-m"]\n'
        "[compute]\nlean = true\nbf16 = true\nmax_tokens = 64\npack_tokens = 64\n",
        encoding="utf-8",
    )
    return path


def test_the_command_shows_margins(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "train", "plan", str(config), "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert [peak["stage"] for peak in result["peaks"]] == ["actor", "critic", "scoring"]
    assert result["processes"] == 2 and all(rate["times_least"] > 1 for rate in result["rates"])
    assert mira(monkeypatch, "train", "plan", str(config)) == 0
    shown = capsys.readouterr().out
    assert "each with the whole model" in shown and "times the least" in shown
    assert "of 80 GB are kept free; --gpu-memory plans for another GPU" in shown, "also where there is no GPU at all"
    assert "main memory: a process loads at most" in shown and "15% more than the total for its gaps" in shown
    assert max(peak["loaded"] for peak in result["peaks"]) > 0
    low = ("--set", "actor.optimization.learning_rate=5e-5")
    assert mira(monkeypatch, "train", "plan", str(config), *low) == 0
    assert "the model may learn only a part of what it is asked" in capsys.readouterr().out


def test_what_does_not_fit_is_one_line(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        BadInput, match=r"the actor needs .* GB in each of 1 processes.*largest part is weights"
    ) as error:
        plan_of(10**6, Peak(stage="actor", weights=10**7)).check()
    assert "\n" not in str(error.value)
    too_low = ["--set", "actor.optimization.learning_rate=1e-9"]
    assert mira(monkeypatch, "train", "plan", str(config), *too_low) == 2
    assert "would teach nothing" in capsys.readouterr().err
    assert mira(monkeypatch, "train", "plan", str(config), "--set", 'start="nowhere"') == 2
    assert "name a checkpoint or an architecture with --model" in capsys.readouterr().err


def test_a_plan_leaves_room_for_the_gaps_of_the_allocator() -> None:
    """On an H100, 22.6 GB were reserved for a plan of 19.7, so a plan of 92 % of a GPU passed and did not fit."""
    gpu = 80 * GB
    plan_of(gpu, Peak(stage="actor", weights=63 * GB)).check()
    with pytest.raises(
        BadInput, match=r"the actor needs 70\.0 GB .*, 80\.5 GB with 15% for gaps .* has 73\.6 GB for it"
    ):
        plan_of(gpu, Peak(stage="actor", weights=70 * GB)).check()
    plan_of(gpu, Peak(stage="update", weights=30 * GB, sampler=38 * GB)).check()  # vLLM's share has its own gaps


def test_adapters_are_loaded_in_half_the_memory(config: Path) -> None:
    from transformers import LlamaConfig

    shape: dict[str, Any] = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    described = LlamaConfig(vocab_size=100, num_key_value_heads=4, **shape)

    def loaded(*changes: str, processes: int = 2) -> int:
        compute = load_settings(config, changes).compute
        return max(peak.loaded for peak in stage_peaks(described, compute, sharing=Sharing(processes=processes)))

    lean, whole = loaded(), loaded("compute.bf16=false")
    assert lean < 0.8 * whole
    apart = ("compute.shared_base=false", "compute.lora.rank=4")
    assert loaded(*apart) < 0.8 * whole
    assert loaded(*apart, processes=1) > 1.2 * loaded(*apart), "the adapter is merged into float32 weights"


def test_a_fine_tuning_is_planned_from_its_start(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    start = str(config.parent / "start")
    small = ("--set", "compute.max_tokens=64", "--set", "compute.pack_tokens=64")
    assert mira(monkeypatch, "train", "plan", "--start", start, *small, "--rows", "90", "--gpus", "2", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    (peak,), (rate,) = result["peaks"], result["rates"]
    assert (peak["stage"], rate["stage"], result["processes"]) == ("fine-tuning", "fine-tuning", 2)
    assert peak["optimizer"] == peak["gradients"], "two moments, and DDP's copy"
    assert mira(monkeypatch, "train", "plan", "--start", start, *small) == 0
    assert "not checked" in capsys.readouterr().out
    own = tmp_path / "sft.toml"
    own.write_text("failures = true\n[optimization]\nlearning_rate = 1e-9\n", encoding="utf-8")
    assert mira(monkeypatch, "train", "plan", str(own), "--model", start, "--rows", "90", *small) == 2
    assert "optimization.learning_rate 1e-09 would teach nothing" in capsys.readouterr().err
    own.write_text("seed = 1\n[optimization]\nlearning_rate = 1e-4\n[compute]\nbf16 = true\n", encoding="utf-8")
    assert mira(monkeypatch, "train", "plan", str(own), "--model", start, *small) == 2
    assert "give --start CHECKPOINT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--start", "embedded", "--recipe", "ssl"), "leave out one of them"),
        (("--start", "embedded", "--image", "5x5"), "--image and --prompt-tokens are for"),
        (
            ("--start", "embedded", "--set", "compute.shared_base=true"),
            "is for the critics and the actor of a phase: take compute.lora",
        ),
        (("--start", "nowhere"), "start 'nowhere' does not exist"),
        (("smoke", "--start", "embedded"), "unknown key"),
        (("smoke", "--rows", "5"), "--rows is for `mira train sft`"),
    ],
)
def test_what_no_fine_tuning_can_have_is_one_line(
    words: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "train", "plan", *words) == 2
    line = capsys.readouterr().err.strip()
    assert problem in line and "\n" not in line


def test_a_model_of_padded_rows_is_not_planned() -> None:
    from transformers import Lfm2Config

    settings, config = SupervisedSettings(), Lfm2Config(num_hidden_layers=2, layer_types=["conv", "full_attention"])
    with pytest.raises(BadInput, match="models of type lfm2 are fine-tuned on padded rows"):
        plan_fine_tuning(settings, config, "lfm", rows=None, gpus=None, gpu_bytes=80 * GB)


def documented_fine_tunings() -> list[Any]:
    """The commands `mira train sft` in the comments of the shipped configurations, by the configuration's name."""
    found: list[Any] = []
    for path in sorted(HERE.glob("*.toml")):
        comment = re.sub(
            r"^# *", "", "".join(re.findall(r"^#.*\n", path.read_text(encoding="utf-8"), re.M)), flags=re.M
        )
        for command in re.findall(r"mira train sft(?:'[^']*'|\\\n|[^`\n\\'])*", comment):
            words = shlex.split(command.replace("\\\n", " "))
            changes = [value for name, value in pairwise(words) if name == "--set"]
            marks = [pytest.mark.heavy] if path.stem.endswith("-full") else []  # the same with all weights
            found.append(pytest.param(path.stem, changes, id=path.stem, marks=marks))
    return found


@pytest.mark.parametrize(("name", "changes"), documented_fine_tunings())
def test_a_documented_fine_tuning_fits_its_gpus(name: str, changes: list[str]) -> None:
    """That of every weight of 12 billion parameters had no launcher: 236 GB on one GPU of 80 GB."""
    shipped = next((known for known in reversed(architectures()) if name.startswith(known)), None)
    config, model = model_config(shipped, "embedded", "")
    settings = SupervisedSettings.load(None, changes)
    plan_fine_tuning(settings, config, model, rows=20_000, gpus=None, gpu_bytes=80 * GB).check()


def test_documented_fine_tunings_are_found() -> None:
    found = {case.id: case.values[1] for case in documented_fine_tunings()}
    assert {"gemma3-12b", "gemma3-12b-full", "gemma3-270m", "smollm2", "tiny-miniwob"} <= set(found)
    assert len(found["gemma3-12b"]) == 8 and not found["smollm2"]


def plan_of(gpu_bytes: int, *peaks: Peak) -> TrainingPlan:
    return TrainingPlan(model="m", processes=1, sharded=False, gpu_bytes=gpu_bytes, peaks=peaks, rates=())


def test_sharding_divides_what_is_held_and_adds_what_is_gathered(config: Path) -> None:
    from transformers import AutoConfig

    described = AutoConfig.from_pretrained(config.parent / "start")
    compute = load_settings(config, ["compute.shared_base=false"]).compute
    one, parts = (
        stage_peaks(described, compute, sharing=Sharing(processes=4, sharded=sharded))[0] for sharded in (False, True)
    )
    assert (parts.weights, parts.optimizer) == (one.weights // 4, one.optimizer // 4)
    assert one.gradients == 8 * parts.gradients, "each of DDP's processes has them twice"
    assert parts.gathered > 0 == one.gathered
    assert (parts.activations, parts.logits) == (one.activations, one.logits)


def test_zero_divides_the_optimizer_and_from_stage_2_the_gradients(config: Path) -> None:
    from transformers import AutoConfig

    described = AutoConfig.from_pretrained(config.parent / "start")
    compute = load_settings(config, ["compute.shared_base=false"]).compute
    whole, first, second = (
        stage_peaks(described, compute, sharing=Sharing(processes=4, zero=stage))[0] for stage in (0, 1, 2)
    )
    learned = whole.gradients // 2
    assert first.optimizer == second.optimizer == 3 * (learned // 4), "two moments and a copy of the weights"
    assert (first.gradients, second.gradients) == (3 * learned, 2 * learned + learned // 4), (
        "a buffer, sent from a copy"
    )
    assert {peak.weights for peak in (first, second)} == {whole.weights}
    scored = stage_peaks(described, compute, sharing=Sharing(processes=4, zero=2))[-1]
    assert (scored.gradients, scored.optimizer) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemma3-12b", pytest.param("gemma3-12b-full", marks=pytest.mark.heavy)])
def test_the_papers_size_fits_8_gpus_of_80_gb(name: str) -> None:
    settings = load_settings(config_file(name))
    described, model = model_config(None, settings.start, name)
    result = plan_training(settings, described, model, gpus=None, gpu_bytes=80 * GB)
    assert result.processes == 8 and model == "gemma3-12b"
    result.check()
    assert result.usable - result.largest.total > 2 * GB
    assert all(rate.times_least > 1.5 for rate in result.rates)
    assert settings.rollouts.server is not None, "the loop plays on vLLM"


def test_the_configuration_for_every_weight_shards_them(config: Path) -> None:
    """On a tiny Gemma 3: the plan of the published size takes half a minute."""
    from transformers import AutoConfig

    rates = [f"{stage}.optimization.learning_rate=1e-3" for stage in ("actor", "value", "potential")]
    rates += ["value.head_rate=1e-3"]
    settings = load_settings(config_file("gemma3-12b-full"), rates)  # so narrow layers would learn nothing at its rates
    settings = settings.model_copy(update={"compute": settings.compute.model_copy(update=SHORT)})
    described = AutoConfig.from_pretrained(config.parent / "start")
    result = plan_training(settings, described, "tiny", gpus=None, gpu_bytes=80 * GB)
    assert (result.processes, result.sharded) == (8, True)
    assert settings.phases and all(peak.gathered > 0 for peak in result.peaks if peak.stage != "scoring")


SHORT = {"max_tokens": 64, "pack_tokens": 64}


def test_architectures_are_known_by_the_names_of_configurations() -> None:
    assert {name for name in architectures() if "-vl-" not in name} <= {path.stem for path in HERE.glob("*.toml")}
    assert launched_processes(("torchrun", "--nproc_per_node", "4", "-m")) == 4
    assert launched_processes(("torchrun", "--nnodes", "2", "--nproc_per_node", "8", "-m")) == 16
    with pytest.raises(BadInput, match="give --gpus"):
        launched_processes(("torchrun", "--nnodes=1:4", "--nproc_per_node", "8", "-m"))
    assert launched_processes(()) == 1


@pytest.mark.parametrize(
    ("words", "sharing"),
    [
        (("torchrun", "--nproc-per-node=8"), Sharing(processes=8, foreach=True)),
        (("accelerate", "launch", "--num_processes=8", "--use_fsdp"), Sharing(processes=8, sharded=True, foreach=True)),
        (
            ("accelerate", "launch", "--num-processes", "4", "--use_deepspeed", "--zero_stage=1"),
            Sharing(processes=4, zero=1, foreach=True),
        ),
        (
            ("accelerate", "launch", "--config_file", "a.yaml", "--num_processes=2", "--multi_gpu"),
            Sharing(processes=2, foreach=True),
        ),
    ],
)
def test_how_a_launcher_shares_a_model(words: tuple[str, ...], sharing: Sharing) -> None:
    """Options with `=` were not recognised: eight processes were taken for one."""
    assert sharing_of((*words, "-m"), None) == sharing


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("accelerate", "launch", "-m"), "no number of processes .*give --gpus"),
        (("accelerate", "launch", "--config_file", "a.yaml", "-m"), "give --gpus"),
        (("accelerate", "launch", "--config_file=a.yaml", "--num_processes=8", "-m"), "--config_file is not read"),
        (("accelerate", "launch", "--num_processes=8", "--use_deepspeed", "--zero_stage=3"), "ZeRO 3 is not supported"),
    ],
)
def test_a_launcher_that_does_not_say_how_it_shares_a_model_is_refused(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        sharing_of(words, None)


def test_the_stage_of_zero_is_read_from_the_launcher() -> None:
    assert [zero_stage(words) for words in ((), ("accelerate", "launch", "-m"))] == [0, 0]
    assert zero_stage(("accelerate", "launch", "--use_deepspeed", "-m")) == 2
    assert zero_stage(("accelerate", "launch", "--use_deepspeed", "--zero_stage", "1", "-m")) == 1
    with pytest.raises(BadInput, match="ZeRO 3 is not supported"):
        zero_stage(("accelerate", "launch", "--use_deepspeed", "--zero_stage", "3", "-m"))


FOLDERS = ("phase-1/potential", "phase-1/value-fold-1", "phase-1/actor", "phase-2/potential", "phase-2/actor")


@pytest.mark.parametrize(
    ("retain", "left"),
    [("all", FOLDERS), ("actors", FOLDERS[2:]), ("last", FOLDERS[3:])],
)
def test_checkpoints_that_resuming_does_not_need_are_removed(
    retain: Any, left: tuple[str, ...], tmp_path: Path
) -> None:
    """A phase of the paper's size left 141 GB, and critics of earlier phases are never read again."""
    loop = Loop.open(tmp_path / "run", LoopSettings(retain=retain))
    for folder in FOLDERS:
        (loop.out / folder / "model").mkdir(parents=True)
        (loop.out / folder / "log.json").write_text("[]")
    loop.remove_unneeded(1)
    assert all((loop.out / folder / "model").exists() for folder in FOLDERS), "phase 2 continues them"
    loop.remove_unneeded(2)
    assert {folder for folder in FOLDERS if (loop.out / folder / "model").exists()} == set(left)
    assert all((loop.out / folder / "log.json").exists() for folder in FOLDERS)
    assert loop.policy(0).is_dir()
