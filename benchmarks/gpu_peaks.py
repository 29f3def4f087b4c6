"""Peak memory and speed of training stages on a GPU, beside what `mira train plan` says of them.

Models have random weights and published shapes. Every case is a process of its own: it writes a checkpoint, loads it as
a stage does, trains a few steps of the longest rows that the settings allow, and reports PyTorch's peaks. *allocated*
is what tensors took, *reserved* what the allocator held, gaps included, and *context* the rest of the GPU memory that
the process took. Step times leave out the first step.

    python -m benchmarks.gpu_peaks [CASE ...] [--out DIR] [--json]

`CASES` lists the cases; without any, all run. Finished cases are kept in DIR, and the same command runs the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.utils import logging

from benchmarks.watched_training import StepTimes, before_training
from tests.tiny_models.vision_language import QWEN_SPECIAL, byte_tokenizer, write_qwen_processor
from training.data.columns import Column
from training.data.rows import Row
from training.engine import sft, stage_jobs
from training.engine.memory_plan import GB, Peak, Sharing, planned_rows
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.stage_jobs import StageJob, write_job
from training.engine.stage_memory import ANSWER_SHARE, fine_tuning_peak, stage_peaks, with_layers
from training.grpo.evaluation import encode_prompts
from training.grpo.examples import Example
from training.grpo.memory import grpo_peaks, picture_of
from training.grpo.run import load_start
from training.grpo.settings import parse_settings
from training.grpo.trainer import build_trainer
from training.loop.resource_plan import model_config

SHARING: Final = Sharing(foreach=True)
"""One process, whose optimizer updates all weights at once."""
STEPS: Final = 3
IMAGE: Final = (1280, 800)
GEMMA_LAYERS: Final = 12
"""A quarter of the layers of Gemma 3 12B: two periods of five layers with a window and one without. The plan is linear
in the periods."""
LONG: Final = Compute(
    max_tokens=16_384, pack_tokens=16_384, bf16=True, gradient_checkpointing=True, lora=Lora(rank=16, alpha=32)
)
SHORT: Final = Compute(max_tokens=1_024, pack_tokens=4_096, bf16=True, lora=Lora(rank=16, alpha=32))


@dataclass(frozen=True, slots=True)
class Measured:
    """What a case reports beside PyTorch's peaks."""

    planned: Peak
    seconds: list[float]
    tokens: int
    """Of a step, prompts and completions."""


def begin(trainer: Any, times: StepTimes) -> None:
    """Counts the peak from here on, and the seconds of the steps of *trainer*."""
    trainer.add_callback(times)
    torch.cuda.reset_peak_memory_stats()


def small_qwen() -> Any:
    """The shape of Qwen2.5 0.5B."""
    return AutoConfig.for_model(
        "qwen2",
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        vocab_size=151_936,
        tie_word_embeddings=True,
    )


def text_start(config: Any, out: Path, device: str = "cuda") -> Path:
    """A checkpoint of *config* with random weights in bfloat16; its tokenizer knows bytes."""
    torch.manual_seed(0)
    with torch.device(device):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(out)
    byte_tokenizer(QWEN_SPECIAL, pad_token="<|endoftext|>", eos_token="<|im_end|>").save_pretrained(out)
    return out


def stage(kind: Any, compute: Compute) -> Callable[[Path], Measured]:
    """A stage of a phase of MiRA with Gemma 3's shape."""

    def measure(folder: Path) -> Measured:
        config = with_layers(model_config("gemma3-12b", "", "")[0].get_text_config(), GEMMA_LAYERS)
        start = text_start(config, folder / "start")
        torch.cuda.empty_cache()
        rows = planned_rows(compute.pack_tokens, compute.max_tokens, ANSWER_SHARE) * STEPS
        batch = len(rows) // STEPS
        columns = {Column.TARGET: [0.5] * len(rows), Column.ADVANTAGE: [0.5] * len(rows)}
        columns |= {Column.REFERENCE: [-5.0] * len(rows)}
        how = Optimization(learning_rate=1e-4, batch_rows=batch)
        write_job(folder / kind, StageJob(kind=kind, start=start, optimization=how, compute=compute), rows, columns)
        times = StepTimes()
        with before_training(stage_jobs, "train", lambda trainer: begin(trainer, times)):
            stage_jobs.run_job(folder / kind)
        name = "actor" if kind == "actor" else "critic"
        peaks = stage_peaks(config, compute, sharing=SHARING)
        planned = next(peak for peak in peaks if peak.stage == name)
        return Measured(planned, times.seconds, batch * compute.max_tokens)

    return measure


def fine_tuning(compute: Compute, batch_rows: int) -> Callable[[Path], Measured]:
    """Supervised fine-tuning with the shape of Qwen2.5 0.5B."""

    def measure(folder: Path) -> Measured:
        config = small_qwen()
        start = text_start(config, folder / "start")
        torch.cuda.empty_cache()
        tokens = compute.max_tokens
        answer = round(tokens * ANSWER_SHARE)
        rows = [
            Row((number, *[10] * (tokens - answer - 1)), (11,) * answer, number, 0)
            for number in range(STEPS * batch_rows)
        ]
        times = StepTimes()
        job = SupervisedJob(
            start=start, optimization=Optimization(learning_rate=1e-4, batch_rows=batch_rows), compute=compute
        )
        with before_training(sft, "train_on", lambda trainer: begin(trainer, times)):
            supervised(job, rows, folder / "out")
        planned = fine_tuning_peak(config, compute, sharing=SHARING)
        return Measured(planned, times.seconds, batch_rows * tokens)

    return measure


def vision_start(out: Path) -> Path:
    """A checkpoint with the shape of Qwen2.5-VL 3B and random weights in bfloat16; one byte of text is one token."""
    tokenizer = byte_tokenizer(QWEN_SPECIAL, pad_token="<|endoftext|>", eos_token="<|im_end|>")
    config, _ = model_config("qwen2.5-vl-3b", "", "")
    for name, token in (
        ("image_token_id", "<|image_pad|>"),
        ("video_token_id", "<|video_pad|>"),
        ("vision_start_token_id", "<|vision_start|>"),
        ("vision_end_token_id", "<|vision_end|>"),
    ):
        setattr(config, name, tokenizer.convert_tokens_to_ids(token))
    torch.manual_seed(0)
    with torch.device("cuda"):
        model: Any = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    write_qwen_processor(out, "Qwen2_5_VLProcessor", "Qwen2VLVideoProcessor", 14, most=65_536)
    return out


def group_relative(changes: dict[str, Any]) -> Callable[[Path], Measured]:
    """GRPO with the shape of Qwen2.5-VL 3B on screenshots; every completion has its greatest length."""

    def measure(folder: Path) -> Measured:
        from PIL import Image

        start = vision_start(folder / "start")
        torch.cuda.empty_cache()
        Image.effect_noise(IMAGE, 80).convert("RGB").save(folder / "page.png")
        settings = parse_settings(
            {
                "recipe": "guirlvg",
                "kl_by_reward": False,
                "steps": STEPS,
                "answer_tokens": 128,
                "group": 8,
                "optimization": {"batch_rows": 32, "warmup": 0, "learning_rate": 1e-5},
                **changes,
            },
            "benchmark",
        )
        examples = tuple(
            Example.model_validate(
                {
                    "name": str(number),
                    "messages": (("user", f"Where is control number {number:02d}?"),),
                    "target": {"kind": "point", "box": (100, 100, 140, 130), "size": IMAGE},
                    "image": folder / "page.png",
                }
            )
            for number in range(16)
        )
        model, processor = load_start(start, vision=True)
        picture = picture_of(AutoConfig.from_pretrained(start), IMAGE, settings, processor)
        trainer = build_trainer(model, processor, examples, settings, folder / "out")
        trainer.generation_config.min_new_tokens = settings.answer_tokens
        trainer.reward_funcs = [_alternating]  # a random model is never right, and equal rewards would train nothing
        times = StepTimes()
        begin(trainer, times)
        trainer.train()
        prompt = encode_prompts(processor, examples[:1], settings.room)["input_ids"].shape[1]
        peaks = grpo_peaks(AutoConfig.from_pretrained(start), settings, picture=picture, prompt=prompt, sharing=SHARING)
        rows = settings.optimization.batch_rows
        planned = max(peaks, key=lambda peak: peak.total)
        return Measured(planned, times.seconds, rows * (prompt + settings.answer_tokens))

    return measure


def _alternating(completions: list[Any], **_: Any) -> list[float]:
    return [float(number % 2) for number in range(len(completions))]


ADAPTERS: Final = {"lora": {"rank": 64, "alpha": 128}, "bf16": True, "max_tokens": 4_096}
CASES: Final[dict[str, Callable[[Path], Measured]]] = {
    "sft-qwen2.5-0.5b": fine_tuning(SHORT, 8),
    "actor-gemma3": stage("actor", LONG),
    "critic-gemma3": stage("value", LONG),
    "actor-gemma3-shared-base": stage("actor", LONG.model_copy(update={"shared_base": True})),
    "grpo-qwen2.5-vl-3b": group_relative({"micro_rows": 4, "compute": {**ADAPTERS, "gradient_checkpointing": True}}),
    "grpo-qwen2.5-vl-3b-kept": group_relative({"micro_rows": 2, "compute": ADAPTERS}),
}
"""By name. `-kept`: activations are kept, not recomputed."""


def measure(case: str) -> dict[str, Any]:
    """Runs *case* in this process."""
    free, total = torch.cuda.mem_get_info()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = CASES[case](Path(folder))
    left = torch.cuda.mem_get_info()[0]
    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    step = median(result.seconds[1:])
    return {
        "case": case,
        "gpu": torch.cuda.get_device_name(),
        "gpu_gb": round(total / GB, 2),
        "stage": result.planned.stage,
        "planned_gb": round(result.planned.total / GB, 3),
        "roles_gb": {name: round(value / GB, 3) for name, value in result.planned if isinstance(value, int) and value},
        "allocated_gb": round(allocated / GB, 3),
        "reserved_gb": round(reserved / GB, 3),
        "context_gb": round((free - left - torch.cuda.memory_reserved()) / GB, 3),
        "plan_to_allocated": round(result.planned.total / allocated, 3),
        "step_s": round(step, 3),
        "steps_an_hour": round(3600 / step, 1),
        "tokens_a_second": round(result.tokens / step),
        "seconds": [round(second, 3) for second in result.seconds],
        "whole_s": round(time.perf_counter() - begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--out", type=Path, help="folder of finished cases")
    parser.add_argument("--limit-s", type=float, default=600.0, help="seconds that a case may take (%(default)s)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"unknown case {sorted(unknown)[0]!r}; there are {', '.join(CASES)}")
    if not torch.cuda.is_available():
        parser.error("no GPU: this measures CUDA's memory")
    logging.disable_progress_bar()
    if options.here:
        print(json.dumps(measure(options.cases[0])))
        return
    results = [_finished(case, options) for case in options.cases or CASES]
    done = [result for result in results if result is not None]
    if options.json:
        print(json.dumps(done))
        return
    for result in done:
        print(
            f"{result['case']}: planned {result['planned_gb']:.1f} GB, allocated {result['allocated_gb']:.1f} "
            f"({result['plan_to_allocated']:.2f}), reserved {result['reserved_gb']:.1f}, context "
            f"{result['context_gb']:.1f}; {result['step_s']:.2f} s a step, {result['tokens_a_second']} tokens/s"
        )


def _finished(case: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """The result of *case*, measured in a process of its own unless it is in `--out`; None where it failed."""
    kept = None if options.out is None else options.out / f"{case}.json"
    if kept is not None and kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "benchmarks.gpu_peaks", case, "--here"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=options.limit_s)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"{case}: {error}", file=sys.stderr, flush=True)
        return None
    line = done.stdout.splitlines()[-1]
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(line + "\n", encoding="utf-8")
    return json.loads(line)


if __name__ == "__main__":
    main()
