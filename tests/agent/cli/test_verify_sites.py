"""The file of proofs, with which an interrupted `mira sites verify` continues."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli.verify_sites import ProofRequest, prove_all
from envs.core.tasks import TaskRef
from envs.suites.sites.proof import Proof

TASK = TaskRef(suite="sites", name="shop-add-to-basket", seed=3)


@pytest.mark.browser
async def test_a_proof_with_a_unicode_line_separator_is_kept(tmp_path: Path) -> None:
    proof = Proof(
        template=TASK.name, seed=3, instruction="Buy\u2028tea\u0085", actions=4, seconds=1.0, mutants=2, problems=()
    )
    file = tmp_path / "proofs.jsonl"
    file.write_text(proof.model_dump_json() + "\n" + proof.model_dump_json()[:30], encoding="utf-8")
    assert await prove_all(ProofRequest([TASK], workers=1, out=file)) == (proof,)
    assert file.read_text(encoding="utf-8") == proof.model_dump_json() + "\n"
