"""Early stopping on held-out rows: the scores, the kept weights, resuming, and the end of training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.test_padded_sft import job
from tests.training.engine.test_tree_attention import recurrent
from tests.training.engine.token_rows import rows_of
from training.data.rows import Row
from training.engine import sft
from training.engine.annotate import score_completions
from training.engine.checkpoints import load_policy, load_tokenizer, save_policy
from training.engine.early_stopping import ValidationScore, best_epoch, best_score, is_exhausted, read_scores
from training.engine.settings import Lora, Optimization
from training.engine.sft import supervised

torch.set_num_threads(1)

LEARNED = rows_of(8)
OTHER = rows_of(6, seed=7)
"""Random tokens: what is learned from `LEARNED` makes them less likely."""


def how(epochs: int, rate: float = 3e-3) -> Optimization:
    return Optimization(learning_rate=rate, batch_rows=4, epochs=epochs)


def loss_of(folder: Path, rows: list[Row]) -> float:
    total = sum(score_completions(load_policy(folder)[0].eval(), rows, 100))
    return -total / sum(len(row.completion) for row in rows)


@pytest.mark.parametrize("lora", [None, Lora(rank=8)])
def test_scores_are_those_of_the_weights_and_the_best_are_kept(tmp_path: Path, lora: Lora | None) -> None:
    out = supervised(job(how(4), lora=lora), LEARNED, tmp_path / "a", validation=LEARNED)
    scores = read_scores(tmp_path / "a")
    assert [score.step for score in scores] == [0, 2, 4, 6, 8]
    assert scores[0].loss == pytest.approx(loss_of(embedded_dir(), LEARNED), rel=1e-4)
    assert best_score(scores).loss == pytest.approx(loss_of(out, LEARNED), rel=1e-4)
    assert best_score(scores).loss < scores[0].loss
    adapter = set[str]() if lora is None else {"adapter"}
    assert {file.name for file in (tmp_path / "a").iterdir()} == {"model", "log.json", "validation.json"} | adapter
    plain = supervised(job(how(best_score(scores).step // 2), lora=lora), LEARNED, tmp_path / "b")
    assert loss_of(plain, LEARNED) == pytest.approx(best_score(scores).loss, rel=1e-3), "scoring changes no training"


def test_training_ends_where_the_loss_no_longer_falls_and_the_best_epoch_is_kept(tmp_path: Path) -> None:
    """A rate that destroys the model: no epoch is better than the start, which whoever trained still has."""
    patient = job(how(20, rate=0.3)).model_copy(update={"patience": 2})
    out = supervised(patient, LEARNED, tmp_path, validation=OTHER)
    scores = read_scores(tmp_path)
    assert [score.step for score in scores] == [0, 2, 4] and best_score(scores) is scores[0]
    assert best_epoch(scores) is min(scores[1:], key=lambda score: score.loss)
    assert loss_of(out, OTHER) == pytest.approx(best_epoch(scores).loss, rel=1e-4)


def test_exact_answers_are_counted(tmp_path: Path) -> None:
    """One row that is learned by heart, and one with another completion for the same prompt."""
    learned = Row((20, 21, 22), (30, 31), 0, 0)
    other = Row((20, 21, 22), (30, 32), 1, 0)
    eager = Optimization(learning_rate=1e-2, batch_rows=1, epochs=12)
    supervised(job(eager).model_copy(update={"patience": 12}), [learned], tmp_path, validation=[learned, other])
    scores = read_scores(tmp_path)
    assert scores[0].exact == 0 and scores[-1].exact == 0.5


def test_a_killed_training_continues_behind_its_last_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = job(how(4)).model_copy(update={"patience": 9})
    expected = supervised(whole, LEARNED, tmp_path / "whole", validation=LEARNED)

    class Killed(RuntimeError):
        """Ends the training in its third epoch."""

    scored = sft.SupervisedTrainer.pack_loss

    def killed(self: sft.SupervisedTrainer, *values: object, **named: object) -> object:
        if self.state.global_step == 5:
            raise Killed
        return scored(self, *values, **named)  # pyright: ignore[reportArgumentType]

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(sft.SupervisedTrainer, "pack_loss", killed)
        supervised(whole, LEARNED, tmp_path / "killed", validation=LEARNED)
    assert [score.step for score in read_scores(tmp_path / "killed")] == [0, 2, 4]
    supervised(whole, LEARNED, tmp_path / "killed", validation=LEARNED)
    first, second = (read_scores(tmp_path / name) for name in ("whole", "killed"))
    assert [score.step for score in second] == [0, 2, 4, 6, 8]
    assert [score.loss for score in second] == pytest.approx([score.loss for score in first], rel=1e-4)
    assert loss_of(tmp_path / "killed" / "model", LEARNED) == pytest.approx(loss_of(expected, LEARNED), rel=1e-4)


def test_padded_rows_have_no_early_stopping(tmp_path: Path) -> None:
    """Of a recurrent model."""
    save_policy(recurrent(), load_tokenizer(embedded_dir()), tmp_path / "start")
    padded = job(how(1)).model_copy(update={"start": tmp_path / "start"})
    with pytest.raises(BadInput, match=r"validation rows are packed, but a model of type .*; or leave them out"):
        supervised(padded, LEARNED, tmp_path / "sft", validation=OTHER)


def test_a_validation_row_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 rows are longer"):
        supervised(job(how(1), max_tokens=64), LEARNED, tmp_path, validation=[Row((10,) * 64, (11,), 0, 0)])


def test_patience() -> None:
    def scores(*losses: float) -> list[ValidationScore]:
        return [ValidationScore(step=step, loss=loss, exact=0.0) for step, loss in enumerate(losses)]

    assert not is_exhausted(scores(1.0), 1)
    assert is_exhausted(scores(1.0, 1.0), 1) and not is_exhausted(scores(1.0, 0.9), 1)
    assert not is_exhausted(scores(1.0, 0.5, 0.6), 2) and is_exhausted(scores(1.0, 0.5, 0.6, 0.7), 2)
    assert best_score(scores(1.0, 0.5, 0.5)).step == 1


def test_scores_of_a_folder_without_any(tmp_path: Path) -> None:
    assert read_scores(tmp_path) == ()
    (tmp_path / "validation.json").write_text(json.dumps([{"step": 0, "loss": 1.5, "exact": 0.25}]))
    assert read_scores(tmp_path) == (ValidationScore(step=0, loss=1.5, exact=0.25),)
