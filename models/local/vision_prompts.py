"""Encodes messages with pictures for a vision-language checkpoint in this process, as `mira train grpo` does.

Pictures come before the text of their message. The processor of the checkpoint resizes them and writes their tokens.
Where a prompt is too long, the middle of what follows the last picture is removed; pictures are never cut.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.base import Image, Message, ModelRejected
from models.prompting.prompt_tokens import MIN_ROOM, PromptTokens, Turn, processor_markers


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt as a model takes it."""

    ids: tuple[int, ...]
    """With the tokens of its pictures."""
    inputs: Mapping[str, Any]
    """The model's other inputs: tensors of pixels and sizes, and fields of one value per token, [1, L]."""


class VisionPrompts(PromptTokens):
    """Encodes prompts with a processor of transformers and its chat template."""

    def __init__(self, processor: Any) -> None:
        super().__init__(processor.tokenizer, processor_markers(processor))
        self._processor = processor

    def encode_pictures(self, messages: Sequence[Message], room: int) -> EncodedPrompt:
        """At most *room* tokens, including the generation prompt. Raises ModelRejected if text of a message became a
        control token, if a picture cannot be read, and if the pictures leave no room for the text."""
        self.checked(messages)
        written = self.for_template(messages)
        turns = [
            _content(turn, [_opened(image) for image in message.images])
            for turn, message in zip(self.turns(written), written, strict=True)
        ]
        batch: Mapping[str, Any] = self._processor.apply_chat_template(
            [turns], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        fields = {name: value for name, value in batch.items() if name not in ("input_ids", "attention_mask")}
        ids: tuple[int, ...] = tuple(batch["input_ids"][0].tolist())
        if len(ids) <= room:
            return EncodedPrompt(ids, fields)
        return self._fitted(ids, fields, room)

    def template_text(self, turns: Sequence[Turn]) -> str:
        """The prompt as text, with one marker a picture."""
        contents = [_content(turn, [None] * turn.images) for turn in turns]
        return self._processor.apply_chat_template(contents, add_generation_prompt=True, tokenize=False)

    def _fitted(self, ids: tuple[int, ...], fields: Mapping[str, Any], room: int) -> EncodedPrompt:
        token = getattr(self._processor, "image_token_id", None)
        kept = max((place + 1 for place, own in enumerate(ids) if own == token), default=0)
        if room - kept < MIN_ROOM:
            raise ModelRejected(
                f"the images and what precedes them take {kept} of the {room} tokens of a prompt: use a smaller "
                "view, one image instead of both, or a checkpoint with a larger context"
            )
        short = (*ids[:kept], *self.shortened(ids[kept:], room - kept))
        return EncodedPrompt(
            short, {name: _without_middle(value, len(ids), kept, len(short)) for name, value in fields.items()}
        )


def _without_middle(value: Any, length: int, kept: int, short: int) -> Any:
    """A field of one value per token for a prompt of *short* tokens, of which those after *kept* are text; other
    tensors as they are."""
    if tuple(value.shape) != (1, length):
        return value
    cut = value.new_zeros((1, short))
    cut[:, :kept] = value[:, :kept]
    return cut


def _content(turn: Turn, pictures: Sequence[Any]) -> dict[str, Any]:
    """A message in the chat template's format; a picture of None is a marker alone."""
    images = [{"type": "image"} if picture is None else {"type": "image", "image": picture} for picture in pictures]
    return {"role": turn.role, "content": [*images, {"type": "text", "text": turn.text}]}


def _opened(image: Image) -> Any:
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    try:
        with Pillow.open(io.BytesIO(image.data)) as opened:
            return opened.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise ModelRejected(f"an image cannot be read: {error}") from error
