"""Models that see: their weights, and the processor that encodes text and images for them.

Prompts of a batch are padded on the left, every field that has a value a token among them. Qwen2.5-VL's processor gives
`mm_token_type_ids`, Gemma 3's `token_type_ids`: padded on the other side than the tokens, they name the wrong tokens as
those of the image, which is an error where the lengths happen not to fit, and wrong log-probabilities where they do.

Processors that read videos, too, need torchvision for that part alone. Where it is not installed they are put together
without it: images are read by Pillow, and the settings for videos are kept as they are for whoever loads the result.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from envs.core.errors import BadInput
from models.local.safe_loading import LOCAL, WEIGHTS
from training.engine.checkpoints import check_weights

VISION_EXTRA = "pip install 'mira-web[vision]'"
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError)
"""What transformers raises for a checkpoint that it cannot read, or not without a package."""


def load_vision_model(folder: Path) -> tuple[Any, Any]:
    """(model in float32, processor that pads on the left). Never asks the network. Raises BadInput in one line, also
    where the processor needs a package that is not installed."""
    from transformers import AutoModelForImageTextToText

    if not (folder / "config.json").is_file():
        raise BadInput(f"{str(folder)!r} is no checkpoint: it holds no config.json")
    check_weights(folder)
    try:
        model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, **WEIGHTS)
        processor = load_processor(folder)
    except _UNREADABLE as error:
        raise BadInput(
            f"examples have images, and {str(folder)!r} cannot be loaded as a model that sees: {_told(error)}"
        ) from error
    return model, processor


def _told(error: BaseException) -> str:
    """One line. transformers explains in a paragraph how to install torchvision."""
    told = " ".join(str(error).split())[:300]
    if find_spec("torchvision") is None and "torchvision" in told.lower():
        return f"it needs torchvision, in the version that fits your torch: {VISION_EXTRA}"
    return told


def load_processor(folder: Path) -> Any:
    """The processor in *folder*, padding on the left. Raises what transformers does where it cannot be read."""
    from transformers import AutoProcessor

    try:
        return pad_left(AutoProcessor.from_pretrained(folder, **LOCAL))
    except ImportError:
        if find_spec("torchvision") is not None:
            raise
        return pad_left(_without_videos(folder))


def pad_left(processor: Any) -> Any:
    """*processor*, or a tokenizer, which from now on pads every field on the left."""
    tokenizer = getattr(processor, "tokenizer", processor)
    tokenizer.padding_side = "left"
    tokenizer.init_kwargs["padding_side"] = "left"  # processors ask these settings first
    return processor


def _without_videos(folder: Path) -> Any:
    """The processor in *folder*, its part for videos replaced by that part's settings."""
    from transformers import AutoConfig
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    config = AutoConfig.from_pretrained(folder, **LOCAL)
    kind = _for_images(PROCESSOR_MAPPING[type(config)])
    settings, _ = kind.get_processor_dict(folder, local_files_only=True)
    parts = [_part(name, folder) for name in kind.get_attributes()]
    return kind.from_args_and_dict(parts, settings)


def _for_images(kind: Any) -> Any:
    """The class *kind*, which takes any object as its part for videos. It has the name of *kind*: saved processors are
    loaded by it."""

    def check_argument_for_proper_class(self: Any, argument_name: str, argument: Any) -> Any:
        if argument_name == "video_processor":
            return type(argument)
        return kind.check_argument_for_proper_class(self, argument_name, argument)

    return type(kind.__name__, (kind,), {"check_argument_for_proper_class": check_argument_for_proper_class})


def _part(name: str, folder: Path) -> Any:
    from transformers import AutoImageProcessor, AutoTokenizer

    match name:
        case "tokenizer":
            return AutoTokenizer.from_pretrained(folder, **LOCAL)
        case "image_processor":
            return AutoImageProcessor.from_pretrained(folder, backend="pil", **LOCAL)
        case "video_processor":
            return _video_settings(folder)
        case _:
            raise ImportError(f"the processor's {name} needs torchvision")


def _video_settings(folder: Path) -> Any:
    """A stand-in that has the settings for videos as attributes and writes them as they were read."""
    from transformers.video_processing_utils import VideoProcessorMixin

    class VideoSettings(VideoProcessorMixin):
        def to_dict(self) -> dict[str, Any]:
            return dict(settings)

    settings, _ = VideoProcessorMixin.get_video_processor_dict(folder, local_files_only=True)
    return VideoSettings(**settings)
