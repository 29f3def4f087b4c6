"""Model families from a stock checkpoint through every stage; multimodal ones used to crash after the rollouts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from envs.core.errors import BadInput
from models.base import ChatRequest, Message, ModelTruncated
from models.specs import make_model
from tests.training.engine.families import FAMILIES, save_family
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.engine.annotate import score_completions
from training.engine.checkpoints import adapter_weights, load_policy, policy_spec
from training.engine.critic_model import Critic
from training.engine.preflight import check_trainable
from training.engine.scoring import score
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.stage_jobs import StageJob, launch, write_job
from training.loop.loop import Loop
from training.loop.settings import LoopSettings

torch.set_num_threads(1)
ROWS = rows_of(8)
ASKED = [1.0, -1.0] * 4
"""Target sign of each row's change of log-probability."""
HOW: dict[str, dict[str, Any]] = {
    "every weight": {},
    "LoRA": {"lora": Lora(rank=4)},
    "shared_base": {"lora": Lora(rank=4), "shared_base": True},
}


def compute_of(how: str) -> Compute:
    return Compute(cpu=True, threads=1, pack_tokens=200, **HOW[how])


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {family: save_family(family, tmp_path_factory.mktemp(family) / "start") for family in (*FAMILIES, "llava")}


def stage(kind: Any, start: Path, out: Path, compute: Compute, **columns: list[float]) -> Path:
    how = Optimization(learning_rate=3e-3, batch_rows=4, epochs=6)
    write_job(
        out,
        StageJob(kind=kind, start=start, optimization=how, compute=compute),
        ROWS,
        {Column(name): values for name, values in columns.items()},
    )
    return launch(out)


def encoders(folder: Path) -> dict[str, torch.Tensor]:
    weights = load_file(folder / "model.safetensors")
    return {name: weight for name, weight in weights.items() if "vision" in name}


EVERY_WAY = [*(("gemma3", how) for how in HOW), *((family, "LoRA") for family in FAMILIES if family != "gemma3")]


@pytest.mark.parametrize(("family", "how"), EVERY_WAY)
def test_an_actor_can_be_trained_saved_and_played(
    starts: dict[str, Path], tmp_path: Path, family: str, how: str
) -> None:
    start, compute = starts[family], compute_of(how)
    check_trainable(start, compute)
    before = score("actions", start, ROWS, compute)
    trained = stage("actor", start, tmp_path / "actor", compute, advantage=ASKED, reference=list(before))
    moved = [now - then for now, then in zip(score("actions", trained, ROWS, compute), before, strict=True)]
    assert all(change * target_gain > 0.05 for change, target_gain in zip(moved, ASKED, strict=True)), moved
    if how != "shared_base":
        assert ((trained / "preprocessor_config.json").is_file()) == (family == "gemma3"), "servers ask for it"
        kept, now = encoders(start), encoders(trained)
        assert kept.keys() == now.keys() and all(torch.equal(kept[name], now[name]) for name in kept)
    else:
        assert not [name for name in adapter_weights(trained) if "vision" in name], "rows are text"
    loaded = load_policy(trained)[0].eval()
    assert score_completions(loaded, ROWS, 200) == pytest.approx(score("actions", trained, ROWS, compute), abs=1e-3)
    again = stage("actor", trained, tmp_path / "again", compute, advantage=ASKED, reference=list(before))
    assert (again / "adapter_config.json").exists() == (how == "shared_base"), "the next phase starts from it"


@pytest.mark.parametrize(
    ("kind", "family", "how"),
    [
        *(("value", family, how) for family, how in EVERY_WAY),
        # one trainer trains both kinds, so that one family says enough about the other
        *(
            pytest.param("potential", family, how, marks=() if family == "gemma3" else pytest.mark.heavy)
            for family, how in EVERY_WAY
        ),
    ],
)
def test_a_critic_can_be_trained_saved_and_continued(
    starts: dict[str, Path], tmp_path: Path, kind: Any, family: str, how: str
) -> None:
    start, compute = starts[family], compute_of(how)
    targets = [0.0, 1.0] * 4
    trained = stage(kind, start, tmp_path / "critic", compute, target=targets)
    scores = score("states", trained, ROWS, compute)
    assert all(abs(score_ - target) < 0.45 for score_, target in zip(scores, targets, strict=True)), scores
    assert score("states", trained, ROWS, compute) == scores
    if how != "shared_base":
        assert Critic.is_at(trained)
    further = stage(kind, trained, tmp_path / "further", compute, target=targets)
    closer = score("states", further, ROWS, compute)
    assert sum(abs(a - b) for a, b in zip(closer, targets, strict=True)) < sum(
        abs(a - b) for a, b in zip(scores, targets, strict=True)
    )


@pytest.mark.parametrize("lora", [None, Lora(rank=4)], ids=["every weight", "LoRA"])
async def test_a_multimodal_start_is_fine_tuned_and_plays(
    starts: dict[str, Path], tmp_path: Path, lora: Lora | None
) -> None:
    start = starts["gemma3"]
    how = Optimization(learning_rate=3e-3, batch_rows=4, epochs=4)
    compute = Compute(cpu=True, threads=1, lora=lora)
    trained = supervised(SupervisedJob(start=start, optimization=how, compute=compute), ROWS, tmp_path)
    rose = sum(score("actions", trained, ROWS, compute)) - sum(score("actions", start, ROWS, compute))
    assert rose > 5
    model = make_model(policy_spec(trained))
    try:
        request = ChatRequest((Message("user", "Goal: Save\nPage:\n[1] button"),), max_tokens=4)
        reply = await model.complete(request)
        assert reply.prompt_token_ids
    except ModelTruncated:
        pass  # a random model does not end its answers
    finally:
        await model.aclose()


WRONG: dict[str, tuple[str, Lora | None, str]] = {
    "no causal model": ("llava", None, "transformers has no causal language model of type llava"),
    "no such layers": (
        "gemma3",
        Lora(targets=("qkv",)),
        "compute.lora.targets: the model has none of qkv, but down_proj",
    ),
    "layers of its encoder": ("gemma3", Lora(targets=("out_proj",)), "the model has none of out_proj"),
}


@pytest.mark.parametrize(("family", "lora", "says"), WRONG.values(), ids=WRONG)
def test_untrainable_models_are_refused_before_anything_is_played(
    starts: dict[str, Path], tmp_path: Path, family: str, lora: Lora | None, says: str
) -> None:
    settings = LoopSettings(start=str(starts[family]), compute=Compute(lora=lora))
    with pytest.raises(BadInput, match=re.escape(says)) as error:
        Loop.open(tmp_path / "run", settings)
    assert "\n" not in str(error.value) and not (tmp_path / "run").exists()


def test_a_stock_multimodal_start_may_be_played(starts: dict[str, Path], tmp_path: Path) -> None:
    settings = LoopSettings(start=str(starts["gemma3"]), compute=Compute(lora=Lora()))
    assert Loop.open(tmp_path / "run", settings).settings == settings
