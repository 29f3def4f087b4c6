"""The question that a grounder is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.run.grounders import form_of_model
from models.vision.grounding import GroundingPrompt, declare_form
from models.vision.profiles import profile_named


@pytest.mark.parametrize("served", ["local:{}", "vllm:http://127.0.0.1:8000/v1#{}", "openai:{}"])
def test_a_served_checkpoint_is_asked_in_the_form_that_it_was_trained_on(tmp_path: Path, served: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"vision_config": {}, "model_type": "qwen3_vl"}))
    (tmp_path / "preprocessor_config.json").write_text("{}")
    declare_form(tmp_path, GroundingPrompt(think=True, resolution=True))
    form = form_of_model(served.format(tmp_path))
    assert form is not None and (form.think, form.resolution) == (True, True)
    assert form.profile.name == profile_named("qwen3-vl").name
