"""Chat models of all providers behind one small async interface.

Public here: the interface and its errors. :func:`models.specs.make_model` makes a model from its spec. A call returns
within its deadline or raises a :class:`ModelError`; a partial answer is never returned.
"""

from models.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Image,
    Message,
    ModelBusy,
    ModelError,
    ModelInvalidAnswer,
    ModelRejected,
    ModelStatus,
    ModelTimeout,
    ModelTruncated,
    ModelUnavailable,
    SampledTokens,
    Usage,
)

__all__ = [
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Image",
    "Message",
    "ModelBusy",
    "ModelError",
    "ModelInvalidAnswer",
    "ModelRejected",
    "ModelStatus",
    "ModelTimeout",
    "ModelTruncated",
    "ModelUnavailable",
    "SampledTokens",
    "Usage",
]
