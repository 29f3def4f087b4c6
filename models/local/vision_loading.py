"""Loads processors of vision-language models.

Prompts of a batch are padded on the left, including every field with one value per token, such as `mm_token_type_ids`
of Qwen2.5-VL and `token_type_ids` of Gemma 3. Padded on the other side, these fields mark the wrong tokens as image
tokens: an error if the lengths differ, wrong log-probabilities otherwise.

Processors that also read videos need torchvision for videos only. Without it they are built without the video part:
Pillow reads images, and the video settings are kept unchanged in saved checkpoints. SmolVLM's also needs num2words for
videos only.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from models.local.safe_loading import LOCAL
from models.optional import install_command

VISION_EXTRA = install_command("vision")
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError)
"""Errors of transformers for a checkpoint that it cannot read, or that needs a missing package."""


def loading_error(error: BaseException) -> str:
    """Returns *error* in one line, with an install command if torchvision is missing."""
    text = " ".join(str(error).split())[:300]
    if find_spec("torchvision") is None and "torchvision" in text.lower():
        return f"it needs torchvision, in the version that fits your torch: {VISION_EXTRA}"
    return text


def load_processor(folder: Path, model: Path | None = None) -> Any:
    """Loads the processor in *folder*, padding on the left. *model*: the folder of the model's configuration, if it is
    another one, as for the processor of an adapter. Raises the error of transformers if it cannot be read."""
    from transformers import AutoProcessor

    _replace_number_words()
    try:
        return pad_left(AutoProcessor.from_pretrained(folder, **LOCAL))
    except ImportError:
        if find_spec("torchvision") is not None:
            raise
        return pad_left(_without_videos(folder, model or folder))


def templated_processor(folder: Path, model: Path | None = None) -> Any:
    """Loads the processor in *folder* with a chat template. Raises ValueError if it has none, and the errors of
    :func:`load_processor`."""
    processor = load_processor(folder, model)
    if not hasattr(processor, "image_processor"):  # transformers takes the tokenizer where it knows no processor
        raise OSError(f"{str(folder)!r} has no image processor that transformers knows")
    processor.chat_template = processor.chat_template or processor.tokenizer.chat_template
    if processor.chat_template is None:
        raise ValueError("it has no chat template, so the positions of images in a prompt are not known")
    return processor


def _replace_number_words() -> None:
    """Lets SmolVLM's processor load without num2words, which spells the number of a video's frames."""
    from transformers.models.smolvlm import processing_smolvlm

    module = cast(Any, processing_smolvlm)
    if module.num2words is None:
        module.num2words = _refuse_videos


def _refuse_videos(frames: int) -> str:
    raise ImportError(f"a video of {frames} frames needs the package num2words: pip install num2words")


def pad_left(processor: Any) -> Any:
    """Sets *processor*, or a tokenizer, to pad every field on the left, and returns it."""
    tokenizer = getattr(processor, "tokenizer", processor)
    tokenizer.padding_side = "left"
    tokenizer.init_kwargs["padding_side"] = "left"  # processors read these settings first
    return processor


def _without_videos(folder: Path, model: Path) -> Any:
    """Loads the processor in *folder* with its video part replaced by the part's settings. *model*: the folder of the
    configuration that says which processor it is."""
    from transformers import AutoConfig
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    config = AutoConfig.from_pretrained(model, **LOCAL)
    kind = _for_images(PROCESSOR_MAPPING[type(config)])
    settings, _ = kind.get_processor_dict(folder, local_files_only=True)
    parts = [_part(name, folder) for name in kind.get_attributes()]
    return kind.from_args_and_dict(parts, settings)


def _for_images(kind: Any) -> Any:
    """Returns a subclass of *kind* that accepts any object as its video part. It keeps the name of *kind*, by which
    saved processors are loaded."""

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
    """Returns a placeholder with the video settings as attributes. It writes them unchanged."""
    from transformers.video_processing_utils import VideoProcessorMixin

    settings, _ = VideoProcessorMixin.get_video_processor_dict(folder, local_files_only=True)
    sampling = settings.get("video_sampling") or {}

    class VideoSettings(VideoProcessorMixin):
        num_frames, fps = sampling.get("max_frames"), sampling.get("fps")  # SmolVLM reads them for every prompt

        def to_dict(self) -> dict[str, Any]:
            return dict(settings)

    return VideoSettings(**settings)
