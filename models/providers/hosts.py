"""The vendors' own servers. Only these need a key and have known prices; other servers speak their protocols, too."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

OPENAI_HOST: Final = "api.openai.com"
ANTHROPIC_HOST: Final = "api.anthropic.com"


def is_vendors(url: str | None, host: str) -> bool:
    """Whether the server at *url* is the vendor's own, which is *host*; None stands for the vendor's address."""
    return url is None or urlsplit(url).hostname == host
