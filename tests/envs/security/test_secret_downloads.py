"""A downloaded file that contains a declared secret is not kept, and no file name shows one."""

from __future__ import annotations

import gzip
from pathlib import Path
from urllib.parse import quote

import pytest

from envs.core.actions import ActionResult
from envs.security.allowlist import Origins
from envs.security.secrets import NO_SECRETS, SecretVault
from tests.envs.browser.browsing import Opener, click, visit
from tests.envs.browser.web import Answer, Web
from tests.envs.security.spellings import PACKED, SPELLINGS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

CANARY = "Kestrel7-Quartz"
NAMES = ("plain", "reversed", "upper case", "hex", "base64 of URLs", "base32", "spaced", "rot13")
CONTENTS: dict[str, bytes] = {
    **{
        name: SPELLINGS[name](CANARY).encode()
        for name in ("plain", "reversed", "base64", "HTML, decimal", "a letter a line")
    },
    **{name: make(CANARY) for name, make in PACKED.items()},
}


async def download(opener: Opener, web: Web, name: str, content: bytes, *, declared: bool) -> ActionResult:
    disposition = f"attachment; filename*=UTF-8''{quote(name)}"
    web["/file"] = Answer(
        content, headers={"Content-Type": "application/octet-stream", "Content-Disposition": disposition}
    )
    web["/"] = "<a href=/file>Get</a>"
    vault = SecretVault({"PW": (CANARY, Origins.parse([web.url().rstrip("/")]))}) if declared else NO_SECRETS
    session = await opener(vault=vault)
    await visit(session, web.url())
    result = await click(session, "Get")
    await session.close()
    return result


def stored(folder: Path) -> str:
    return "\n".join(str(path.relative_to(folder)) for path in folder.rglob("*"))


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("spelling", NAMES)
async def test_the_name_of_a_download_showed_a_secret(opener: Opener, web: Web, tmp_path: Path, spelling: str) -> None:
    name = f"key-{SPELLINGS[spelling](CANARY)}.txt"
    result = await download(opener, web, name, b"hello", declared=True)
    assert [download.bytes for download in result.downloads] == [5], result.message
    held = SecretVault({"PW": (CANARY, Origins())})
    assert held.names_in(result.model_dump_json() + stored(tmp_path), deep=True) == frozenset()
    assert "PW" in result.downloads[0].name and (tmp_path / "run" / result.downloads[0].path).read_bytes() == b"hello"
    control = await download(opener, web, name, b"hello", declared=False)
    assert held.names_in(control.downloads[0].name) == {"PW"}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
async def test_a_download_that_holds_a_secret_was_kept(
    opener: Opener, web: Web, tmp_path: Path, content: bytes
) -> None:
    padded = content if content.startswith(b"\x1f\x8b") else b"x" * 3 + b"\n" + content + b"\n"
    refused = await download(opener, web, "export.bin", padded, declared=True)
    assert refused.downloads == () and "refused: it holds the value of secret PW" in refused.message
    assert files_below(tmp_path) == []
    kept = await download(opener, web, "export.bin", padded, declared=False)
    assert [download.bytes for download in kept.downloads] == [len(padded)], "control"


async def test_other_downloads_are_kept_where_secrets_are_declared(opener: Opener, web: Web, tmp_path: Path) -> None:
    content = gzip.compress(b"nothing of interest" * 100)
    result = await download(opener, web, "export.gz", content, declared=True)
    assert (tmp_path / "run" / result.downloads[0].path).read_bytes() == content
