"""A declared value is recognised in every listed spelling, and ordinary text is not changed."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.security.allowlist import Origins
from envs.security.secret_bytes import WINDOW, names_in
from envs.security.secret_spellings import Finder
from envs.security.secrets import SecretVault
from tests.envs.security.spellings import PACKED, SPELLINGS, Spelling

CANARY = "Kestrel7-Quartz"
HOME = Origins.parse(["shop.example"])
OTHER = "Heron9-Basaltic"


def vault(value: str = CANARY) -> SecretVault:
    return SecretVault({"PW": (value, HOME)})


def spells(text: str, value: str = CANARY) -> bool:
    """True if *text* contains any spelling of *value* from the table."""
    return any(spelling(value) in text for spelling in SPELLINGS.values())


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("value", [CANARY, "correct horse battery", "pä55/w\"rd&+ \\'", "tr0ub4dor&3", "a1B2c3"])
def test_a_value_shown_in_another_spelling_was_not_masked(spelling: Spelling, value: str) -> None:
    text = f'[1] button "Go"\nYour key is {spelling(value)} .\nBye'
    masked = vault(value).mask(text)
    assert "<secret>PW</secret>" in masked
    assert not spells(masked, value)
    assert masked.startswith('[1] button "Go"\nYour key is ') and masked.endswith("\nBye")
    assert vault(value).mask(masked) == masked
    assert vault(OTHER).mask(text) == text, "control: another secret finds nothing"


@pytest.mark.parametrize(
    "text",
    [
        "Kestrel 8 Quartz",
        "a kestrel over quartz rocks 7",
        '[7] button "Kestrel" [8] button "Quartz"',
        "Kestrel7",
        "https://shop.example/?q=kestrel&page=7#quartz",
        json.dumps({"digits": list(range(300)), "hex": "deadbeef" * 20}),
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert vault().mask(text) is text


@pytest.mark.parametrize(("value", "text"), [("pass", "PASS the p-a-s-s"), ("secrets", "The Secret s.")])
def test_a_value_like_a_word_is_not_sought_across_case_and_spaces(value: str, text: str) -> None:
    assert vault(value).mask(text) == text


def test_the_number_of_a_control_is_no_part_of_a_value() -> None:
    text = 'hunter\n[2] link "2"'
    assert vault("hunter2").mask(text) == text
    assert vault("hunter2").mask("hunter\n2") == "<secret>PW</secret>"


def test_only_a_complete_value_is_reported_for_typed_text() -> None:
    """Symptom: typing 12 right characters was refused, so that the rest could be guessed character by character."""
    for length in range(4, len(CANARY)):
        assert vault().names_whole_in(CANARY[:length]) == frozenset()
    assert vault().names_whole_in(CANARY) == {"PW"} and vault().names_in(CANARY[:13] + "…") == {"PW"}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.sampled_from([*SPELLINGS]))
def test_surroundings_do_not_hide_a_spelling(around: str, name: str) -> None:
    escape = around.replace("\\", "").replace("%", "").replace("&", "").replace("=", "")
    shown = f"{escape} {SPELLINGS[name](CANARY)} {escape}"
    assert vault().names_in(shown) == {"PW"}


@pytest.mark.parametrize("name", [*SPELLINGS, *PACKED])
def test_bytes_are_searched_in_every_spelling(name: str) -> None:
    data = PACKED[name](CANARY) if name in PACKED else SPELLINGS[name](CANARY).encode()
    assert vault().names_in_bytes(data) == {"PW"}
    assert vault(OTHER).names_in_bytes(data) == frozenset()


def _zip(text: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"<si><t>" + text + b"</t></si>" + b" " * 5_000)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_zip(CANARY.encode()), id="an Office file"),
        pytest.param(b"PK\x05\x06" + _zip(CANARY.encode()), id="a zip with something before it"),
        pytest.param(b"%PDF-1.4\nstream\r\n" + zlib.compress(CANARY.encode()) + b"\nendstream", id="a PDF stream"),
        pytest.param(gzip.compress(_zip(gzip.compress(CANARY.encode()))), id="packed three times"),
        pytest.param(CANARY.encode("latin-1") + bytes(range(256)), id="binary"),
        pytest.param(b"a" * (WINDOW + 50_000) + CANARY.encode() + b"b" * WINDOW, id="a large file"),
        pytest.param(b"a" * (WINDOW - 5) + CANARY.encode(), id="at a window's border"),
    ],
)
def test_files_are_unpacked(data: bytes) -> None:
    assert vault().names_in_bytes(data) == {"PW"}


def test_a_bomb_is_unpacked_within_bounds() -> None:
    bomb = gzip.compress(gzip.compress(bytes(200_000_000)))
    assert names_in(Finder({"PW": CANARY}), bomb) == frozenset()
