"""What Gemini's finish reasons say about an answer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from models.base import ModelInvalidAnswer, ModelRejected
from models.transport import Failure


class Finish(Enum):
    """What a finish reason says about the answer."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    UNUSABLE = "unusable"
    """Another answer to the same request may be usable."""
    REFUSED = "refused"
    DISABLED = "disabled"
    """The server refuses all requests of the account."""


FINISHES: Final[Mapping[str, Finish]] = {
    "": Finish.WHOLE,
    "FINISH_REASON_UNSPECIFIED": Finish.WHOLE,
    "STOP": Finish.WHOLE,
    "MAX_TOKENS": Finish.TRUNCATED,
    "CONTINUATION": Finish.TRUNCATED,
    "LANGUAGE": Finish.UNUSABLE,
    "MALFORMED_FUNCTION_CALL": Finish.UNUSABLE,
    "MALFORMED_RESPONSE": Finish.UNUSABLE,
    "MISSING_THOUGHT_SIGNATURE": Finish.UNUSABLE,
    "OTHER": Finish.UNUSABLE,
    "RECITATION": Finish.UNUSABLE,
    "TOO_MANY_TOOL_CALLS": Finish.UNUSABLE,
    "UNEXPECTED_TOOL_CALL": Finish.UNUSABLE,
    "PUP_LIMITED_DISABLED": Finish.DISABLED,
}
"""By finish reason. All others, also future ones, are refusals."""


def unusable_finish(reason: str) -> Failure | None:
    """Why an answer that ended for *reason* is of no use; None if it is whole, or cut at its limit."""
    match FINISHES.get(reason, Finish.REFUSED):
        case Finish.WHOLE | Finish.TRUNCATED:
            return None
        case Finish.UNUSABLE:
            return Failure(ModelInvalidAnswer, f"the model gave no usable answer ({reason})", retry=True, answered=True)
        case Finish.REFUSED:
            return Failure(ModelRejected, f"the model refused ({reason})", answered=True)
        case Finish.DISABLED:
            return Failure(ModelRejected, f"the server refuses requests of this account ({reason})")
