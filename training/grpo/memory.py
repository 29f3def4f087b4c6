"""Plans the memory of GRPO in one process: while completions are sampled, scored, and learned from.

The language model's passes run on fake tensors (:mod:`training.engine.memory_plan`) with TRL's own output layer, which
computes log-probabilities in chunks; without images they are packed as they are in training. An image encoder reads the
sizes of its images out of tensors, and fake ones have no values: its own code runs on real tensors with its width, few
layers and small images, and the bytes are extrapolated. They are linear in the layers and in the patches, because
attention keeps no matrix of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers.initialization import no_init_weights
from trl.trainer import utils

from envs.core.errors import BadInput
from models.local.loading import reading_old_names
from models.vision.coordinates import Size, smart_resize
from training.data.packing import PackedSequence
from training.data.rows import Row
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.memory_plan import (
    PLANNED_ON,
    LiveBytes,
    Pass,
    Peak,
    Sharing,
    plan_pass,
    planned_sequence,
    storage_key,
)
from training.engine.packed_model import precision
from training.engine.stage_memory import for_all_layers, with_layers
from training.grpo.packed_logprobs import packed_output, plain_attention, prepare_packed
from training.grpo.settings import GrpoSettings
from training.grpo.trainer import adapters_of, freeze_vision, micro_batch, rows_of_process

ENCODER_LAYERS: Final = (2, 4)
PATCHES: Final = (64, 128)
"""Sizes of the image encoder that is run; every other size is extrapolated from them."""
WORDS: Final = 128
"""Tokens of a question beside its image, where the prompts are not known."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The image of a prompt."""

    tokens: int
    """Tokens of the prompt that stand for it."""
    units: int
    """Patches, or images and tiles of one size: the encoder's bytes are linear in them."""
    inputs: Callable[[int], Mapping[str, Tensor]]
    """The encoder's inputs with a number of units."""
    small: tuple[int, int]
    """Numbers of units that are run."""

    @property
    def size(self) -> int:
        """Bytes of the encoder's inputs."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.inputs(self.units).values())


def grpo_peaks(
    config: Any,
    settings: GrpoSettings,
    *,
    picture: Picture | None = None,
    prompt: int | None = None,
    sharing: Sharing | None = None,
) -> tuple[Peak, ...]:
    """The peaks of sampling, scoring and updating for a model of the transformers configuration *config*.

    *prompt*: tokens of the longest prompt, its image included; None: with an image its tokens and `WORDS`, else as many
    as the settings have room for. Raises BadInput.
    """
    sharing = sharing or Sharing()
    if prompt is None:
        prompt = settings.room if picture is None else picture.tokens + WORDS
    rows = rows_of_process(settings, sharing.processes)
    shape = _Shape(rows, micro_batch(settings, rows), settings.group, prompt, settings.answer_tokens)

    def peaks(described: Any) -> tuple[Peak, ...]:
        planner = _Planner(described, settings, shape, sharing, sees=picture is not None)
        return tuple(planner.peaks())

    planned = for_all_layers(config, peaks)
    return planned if picture is None else _Encoder(config, settings, picture).added(planned, shape)


@dataclass(frozen=True, slots=True)
class _Shape:
    rows: int
    """Completions of a process that are sampled together."""
    micro: int
    """Completions in one pass with gradients."""
    group: int
    prompt: int
    answer: int

    @property
    def pass_rows(self) -> tuple[Row, ...]:
        """The rows of a pass with different completions of every prompt."""
        return tuple(
            Row((10 + row // self.group, *[10] * (self.prompt - 1)), (10 + row, *[11] * (self.answer - 1)), row, 0)
            for row in range(self.micro)
        )


class _Planner:
    """Plans the language model's passes for one configuration, with the mask that padded rows need. Scoring and
    updating are packed where training packs them."""

    def __init__(self, config: Any, settings: GrpoSettings, shape: _Shape, sharing: Sharing, *, sees: bool) -> None:
        self._config = config
        self._settings = settings
        self._shape = shape
        self._sharing = sharing
        self._sees = sees
        self._vocabulary = int(config.get_text_config().vocab_size)
        self._cache = 0
        self._packed: PackedSequence | None = None
        """The rows of a pass; None if they are padded."""
        with torch.device("meta"):
            model = _built(config)
        self._loaded = sum(weight.numel() * weight.element_size() for weight in model.parameters())
        self._attention: str = model.config._attn_implementation
        """The attention implementation of padded rows."""
        if settings.packing and not hasattr(config, "vision_config") and prepare_packed(model):
            self._packed = planned_sequence(shape.pass_rows)

    def peaks(self) -> Iterator[Peak]:
        sharing = self._sharing
        tile: int = vars(utils)["_CHUNKED_LOGPROB_CHUNK_SIZE"]  # TRL's part of the vocabulary
        update = plan_pass(Pass("update", self._policy, self._update, tile), sharing)
        sampling = plan_pass(Pass("sampling", self._policy, self._sample, self._vocabulary, trains=False))
        scoring = plan_pass(Pass("scoring", self._policy, self._score, tile, trains=False))
        copies = 2 if self._settings.kl and self._settings.compute.lora is None else 1
        loaded = copies * self._loaded  # in float32: frozen weights are cast once all are read
        kept = {"reference": self._reference(), "optimizer": update.optimizer, "loaded": loaded}
        if sharing.sharded:  # completions are sampled and scored with the weights as they are trained
            kept |= {"weights": update.weights, "gathered": update.gathered}
        elif sharing.processes > 1 and not sharing.zero:
            kept["gradients"] = update.gradients // 2  # DDP keeps its buckets
        layers = self._config.get_text_config().num_hidden_layers
        sampled = max(sampling.activations - self._cache, self._cache // layers)  # the cache grows layer by layer
        sampled += self._more_masks(self._shape.rows, self._shape.prompt)
        masks = 0 if self._packed else self._more_masks(self._shape.micro, self._shape.prompt + self._shape.answer)
        yield sampling.model_copy(update={**kept, "cache": self._cache, "activations": sampled})
        yield scoring.model_copy(update={**kept, "activations": scoring.activations + masks})
        activations = update.activations + masks
        changes = {"reference": kept["reference"], "activations": activations, "loaded": loaded}
        yield update.model_copy(update=changes)

    def _more_masks(self, rows: int, tokens: int) -> int:
        """Bytes of the masks, of a byte for each pair of tokens, that layers with a window need beside those without,
        and of one from which they are made."""
        kinds = set(getattr(self._config.get_text_config(), "layer_types", None) or ())
        return 2 * rows * tokens**2 if len(kinds) > 1 else 0

    def _policy(self) -> nn.Module:
        from peft import get_peft_model

        settings, model = self._settings, _built(self._config)
        adapters = adapters_of(settings, model, sees=self._sees)
        if self._packed is not None:
            prepare_packed(model)
        utils.add_fused_lm_head(model, temperature=settings.temperature, outputs=("log_probs", "entropy"))
        if settings.compute.gradient_checkpointing:
            model.activation_checkpointing_enable()
        if adapters is not None:
            with reading_old_names():
                model = get_peft_model(model, adapters)
            return model if self._sharing.sharded else hold_frozen_in_bfloat16(model, settings.compute)
        if settings.freeze_vision:
            freeze_vision(model)
        return model

    def _reference(self) -> int:
        """Bytes of the copy of the start, whose linear layers are held in bfloat16 under its autocast unless they are
        sharded; with adapters the reference is the model without them."""
        compute = self._settings.compute
        if not self._settings.kl or compute.lora is not None:
            return 0
        with torch.device("meta"):
            model = _built(self._config)
        if not self._sharing.sharded:
            hold_frozen_in_bfloat16(model, compute, frozen=True)
        size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
        return size // self._sharing.processes if self._sharing.sharded else size

    def _sample(self, model: Any) -> Tensor:
        """The pass over the prompts, which fills the cache; the cache grows until the completions end."""
        plain = nullcontext() if self._packed is None else plain_attention(model, self._attention)
        with self._precision(), plain:
            out = model(**_inputs(self._shape.rows, self._shape.prompt), use_cache=True, logits_to_keep=1)
        self._cache = sum(self._grown(tensor) for tensor in _cached(out.cache))
        return out.logits.float()

    def _grown(self, tensor: Tensor) -> int:
        """Bytes of keys or values (B, heads, T, width) at the end; a layer with a window holds no more than that."""
        now, length = tensor.numel() * tensor.element_size(), tensor.shape[-2]
        whole = length >= self._shape.prompt
        return now * (self._shape.prompt + self._shape.answer) // self._shape.prompt if whole else now

    def _score(self, model: Any) -> Tensor:
        return self._logprobs(model)

    def _update(self, model: Any) -> Tensor:
        logprobs = self._logprobs(model)
        return logprobs.sum() if self._packed is not None else logprobs[:, -self._shape.answer :].sum()

    def _logprobs(self, model: Any) -> Tensor:
        if self._packed is not None:
            with self._precision():
                return packed_output(model, self._packed).log_probs
        inputs = _inputs(self._shape.micro, self._shape.prompt + self._shape.answer)
        with self._precision():
            return model(**inputs, labels=inputs["input_ids"].clone(), fused_lm_head=True).log_probs

    def _precision(self) -> torch.autocast:
        return precision(PLANNED_ON, bf16=self._settings.compute.bf16)


def _built(config: Any) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    with no_init_weights():
        kind: Any = AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM
        model = kind.from_config(deepcopy(config), dtype=torch.float32)  # its attention may be changed
    model.tie_weights()
    return model


def _inputs(rows: int, tokens: int) -> dict[str, Tensor]:
    mask = torch.ones(rows, 1, tokens, tokens, dtype=torch.bool)
    return {"input_ids": torch.zeros(rows, tokens, dtype=torch.long), "attention_mask": mask}


def _cached(cache: Any) -> Iterator[Tensor]:
    for layer in cache.layers:
        yield layer.keys
        yield layer.values


class _Encoder:
    """Plans the image encoder."""

    def __init__(self, config: Any, settings: GrpoSettings, picture: Picture) -> None:
        self._config = config
        self._settings = settings
        self._picture = picture
        self._depth = _encoder_depth(config.vision_config)

    def added(self, peaks: tuple[Peak, ...], shape: _Shape) -> tuple[Peak, ...]:
        """*peaks* with what the encoder holds, and the images of a step, which stay from sampling on. TRL holds two
        copies of them while it samples.

        Without gradients the encoder's tensors are gone before the language model's.
        """
        sampling, scoring, update = peaks
        held = shape.rows * self._picture.size
        sampled, scored = (self._bytes(images, trains=False) for images in (shape.rows, shape.micro))
        kept = self._bytes(shape.micro, trains=True)
        return (
            sampling.model_copy(update={"activations": max(sampling.activations, sampled) + 3 * held}),
            scoring.model_copy(update={"activations": max(scoring.activations, scored) + held}),
            update.model_copy(update={"activations": update.activations + kept + held}),
        )

    def _bytes(self, images: int, *, trains: bool) -> int:
        """Bytes of the tensors for a number of *images*: those kept for the backward pass if it *trains*, otherwise the
        most at one time."""
        few, more = ENCODER_LAYERS
        if self._depth <= more:
            return round(self._line(self._depth, images, trains=trains))
        shallow, deep = (self._line(layers, images, trains=trains) for layers in ENCODER_LAYERS)
        return round(shallow + (deep - shallow) / (more - few) * (self._depth - few)) if trains else round(deep)

    def _line(self, layers: int, images: int, *, trains: bool) -> float:
        one, two = self._picture.small
        first, second = (self._run(layers, units, trains=trains) for units in (one, two))
        return first + (second - first) / (two - one) * (self._picture.units * images - one)

    def _run(self, layers: int, units: int, *, trains: bool) -> int:
        inputs = self._picture.inputs(units)
        base, model = self._built(layers)
        model.train(trains)
        decoder, head = base.get_decoder(), base.get_output_embeddings()
        apart = {id(part) for whole in (decoder, head) if isinstance(whole, nn.Module) for part in whole.modules()}
        held = [tensor for part in model.modules() if id(part) not in apart for tensor in _made_real(part)]
        live = LiveBytes(0, {storage_key(tensor) for tensor in (*held, *inputs.values())})
        compute = self._settings.compute
        with live, torch.set_grad_enabled(trains), precision(PLANNED_ON, bf16=compute.bf16):
            features = base.get_image_features(**inputs)
            kept = live.now[0]
            del features
        return kept if trains else live.peak[0]

    def _built(self, layers: int) -> tuple[Any, Any]:
        """A model with *layers* layers in its encoder on the device `meta`, and the same with adapters, if any."""
        from peft import get_peft_model

        shape = with_encoder_depth(with_layers(self._config, 1), layers)
        with torch.device("meta"):
            base = _built(shape)
            adapters = adapters_of(self._settings, base, sees=True)
            if self._settings.compute.gradient_checkpointing:
                base.activation_checkpointing_enable()
            if adapters is not None:
                with reading_old_names():
                    adapted = get_peft_model(base, adapters)
                return base, hold_frozen_in_bfloat16(adapted, self._settings.compute)
            if self._settings.freeze_vision:
                freeze_vision(base)
            return base, base


def _made_real(part: Any) -> Iterator[Tensor]:
    """The own tensors of a module, which are on the device `meta`, after they were replaced by zeros in memory."""
    own: dict[str, Any]
    for own in (part._parameters, part._buffers):
        for name, tensor in own.items():
            if tensor is None:
                continue
            zeros = torch.zeros(tensor.shape, dtype=tensor.dtype)
            own[name] = nn.Parameter(zeros, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else zeros
            yield own[name]


def _encoder_depth(vision: Any) -> int:
    return int(getattr(vision, "depth", None) or vision.num_hidden_layers)


def with_encoder_depth(config: Any, layers: int) -> Any:
    """A copy of *config* with *layers* layers of its image encoder."""
    shape = deepcopy(config)
    setattr(shape.vision_config, "depth" if hasattr(shape.vision_config, "depth") else "num_hidden_layers", layers)
    return shape


def picture_of(config: Any, size: tuple[int, int], settings: GrpoSettings, processor: Any = None) -> Picture:
    """The image of *size* in a prompt to a model of *config*. *processor*: the checkpoint's; without it the rules of
    Qwen2.5-VL are known. Raises BadInput."""
    if processor is None and config.model_type == "qwen2_5_vl":
        return _patched(config, _resized(size, settings, config.vision_config))
    if processor is None:
        raise BadInput(
            f"a model of type {config.model_type!r} with images is planned from its folder only: "
            "name the folder of a checkpoint with --model"
        )
    from PIL import Image

    content = [{"type": "image"}, {"type": "text", "text": "?"}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    inputs = processor(text=[text], images=[Image.new("RGB", size)], return_tensors="pt")
    if "image_grid_thw" in inputs:
        _, down, across = inputs["image_grid_thw"][0].tolist()
        return _patched(config, (across, down))
    token = getattr(config, "image_token_id", None) or config.image_token_index
    pixels = inputs["pixel_values"]
    tiles = pixels.shape[1] if pixels.dim() == 5 else pixels.shape[0]

    def encoded(count: int) -> Mapping[str, Tensor]:
        shape = (1, count, *pixels.shape[2:]) if pixels.dim() == 5 else (count, *pixels.shape[1:])
        return {"pixel_values": torch.ones(shape)}

    return Picture(int((inputs["input_ids"] == token).sum()), tiles, encoded, (1, 2))


def _patched(config: Any, grid: tuple[int, int]) -> Picture:
    """A picture of *grid* patches across and down, as Qwen's encoders take it."""
    vision = config.vision_config
    width = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2

    def encoded(patches: int) -> Mapping[str, Tensor]:
        return {"pixel_values": torch.ones(patches, width), "image_grid_thw": torch.tensor([[1, 8, patches // 8]])}

    patches = grid[0] * grid[1]
    return Picture(patches // vision.spatial_merge_size**2, patches, encoded, PATCHES)


def _resized(size: tuple[int, int], settings: GrpoSettings, vision: Any) -> tuple[int, int]:
    """The grid of patches of an image of *size* (Qwen2.5-VL)."""
    merged = vision.patch_size * vision.spatial_merge_size
    least, most = settings.min_pixels or 4 * merged**2, settings.max_pixels or 16_384 * merged**2
    shown = smart_resize(Size(*size), factor=merged, min_pixels=least, max_pixels=most)
    return shown.width // vision.patch_size, shown.height // vision.patch_size
