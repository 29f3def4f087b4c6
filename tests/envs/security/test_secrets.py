"""Declared secrets: filled at their own origins, refused and masked elsewhere."""

from __future__ import annotations

import base64
import copy
import html
import json
import pickle
import time
import traceback
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from envs.core.errors import BadInput
from envs.security.allowlist import Origins
from envs.security.secrets import NO_SECRETS, Refusal, SecretVault

VALUE = "pä55/w\"rd&+ \\x'"
HOME = Origins.parse(["shop.example"])


def vault(value: str = VALUE, name: str = "PW") -> SecretVault:
    return SecretVault({name: (value, HOME)})


@pytest.mark.parametrize(
    ("text", "url", "filled"),
    [
        ("<secret>PW</secret>", "https://shop.example/login", VALUE),
        ("a<secret>PW</secret>b<secret>PW</secret>", "http://shop.example:81/", f"a{VALUE}b{VALUE}"),
        ("nothing to fill", "https://evil.example/", "nothing to fill"),
        ("<secret>P W</secret>", "https://evil.example/", "<secret>P W</secret>"),
    ],
)
def test_a_secret_is_filled_at_its_own_origin(text: str, url: str, filled: str) -> None:
    assert vault().fill(text, url) == filled


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/",
        "https://shop.example.evil.example/",
        "https://shop.example@evil.example/",
        "https://user:pw@shop.example/",
        "data:text/html,shop.example",
        "about:blank",
        "about:srcdoc",
        "blob:https://shop.example/1",
        "",
    ],
)
def test_a_secret_is_refused_everywhere_else(url: str) -> None:
    refused = vault().fill("x <secret>PW</secret>", url)
    assert isinstance(refused, Refusal)
    assert "PW may only be used at shop.example" in refused.message
    assert VALUE not in refused.message


def test_an_unknown_secret_is_refused() -> None:
    refused = vault().fill("<secret>PIN</secret>", "https://shop.example/")
    assert refused == Refusal("no secret is called PIN; declared: PW")


FORMS = {
    "plain": VALUE,
    "query": urlencode({"p": VALUE}),
    "path": quote(VALUE),
    "path, all": quote(VALUE, safe=""),
    "lower-case percent": quote(VALUE, safe="").lower(),
    "plus": quote_plus(VALUE),
    "twice quoted": quote(quote(VALUE, safe=""), safe=""),
    "JSON": json.dumps({"p": VALUE}),
    "JSON, not ASCII": json.dumps({"p": VALUE}, ensure_ascii=False),
    "JSON in JSON": json.dumps(json.dumps({"p": VALUE})),
    "JSON of JavaScript": json.dumps({"p": VALUE}).replace("/", "\\/"),
    "repr": repr({"p": VALUE}),
    "HTML": f"<i title='{html.escape(VALUE)}'>",
    "HTML text": html.escape(VALUE, quote=False),
    "base64": base64.b64encode(VALUE.encode()).decode(),
    "basic auth": base64.b64encode(f"me:{VALUE}".encode()).decode(),
    "base64 in front": base64.b64encode(f"{VALUE}:x".encode()).decode(),
    "base64 shifted": base64.b64encode(f"a{VALUE}b".encode()).decode(),
    "base64 of URLs": base64.urlsafe_b64encode(f"ab{VALUE}".encode()).decode(),
    "hex": VALUE.encode().hex(),
    "HEX": VALUE.encode().hex().upper(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_sane_spelling_is_masked(form: str) -> None:
    masked = vault().mask(f"before {form} after")
    assert "<secret>PW</secret>" in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    for piece in ("55/w", "55%2F", "55%2f", "7064c3a4", base64.b64encode(VALUE.encode()).decode()[4:12]):
        assert piece not in masked


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(value=TEXTS.filter(lambda v: len(v.strip()) >= 4), before=TEXTS, after=TEXTS)
def test_no_value_survives_masking(value: str, before: str, after: str) -> None:
    assume(value not in "<secret>PW</secret>")
    masked = vault(value).mask(before + value + after)
    assert value not in masked.replace("<secret>PW</secret>", "\0")
    assert vault(value).mask(masked) == masked


@given(text=st.text())
def test_other_text_is_left_alone(text: str) -> None:
    assume("hunter2" not in text)
    assert vault("hunter2").mask(text) == text
    assert NO_SECRETS.mask(text) is text


TOKEN = "".join(f"{number:03x}" for number in range(90))
"""Longer than the limit of a name on a page, without repetitions."""


@pytest.mark.parametrize("shown", [12, 13, 159, 269])
def test_what_was_cut_within_a_value_is_masked(shown: int) -> None:
    cut = TOKEN[:shown]
    for text in (f'[3] textbox "Key" = "{cut}…"\n[4] button', f"type {cut}… into Key, then {cut}…", f"{TOKEN} {cut}"):
        masked = vault(TOKEN).mask(text)
        assert TOKEN[:12] not in masked and "<secret>PW</secret>" in masked
        assert vault(TOKEN).mask(masked) == masked


def test_the_beginning_of_a_value_within_a_longer_word_is_no_cut() -> None:
    for text in (f"{TOKEN[:20]}-other", f"see {TOKEN[:20]} there", f"{TOKEN[:11]}…"):
        assert vault(TOKEN).mask(text) == text


def test_overlapping_values_leave_no_rest() -> None:
    two = SecretVault({"A": ("abcdef", HOME), "B": ("defghi", HOME)})
    assert two.mask("xabcdefghix") == "x<secret>A</secret>x"
    inner = SecretVault({"SHORT": ("hunter", HOME), "LONG": ("hunter22", HOME)})
    assert "22" not in inner.mask("hunter22")


def test_a_value_that_looks_like_the_mask_is_masked_once() -> None:
    odd = vault("secret")
    assert odd.mask("my secret") == "my <secret>PW</secret>"
    assert odd.mask(odd.mask("my secret")) == "my <secret>PW</secret>"


def test_a_page_cannot_hide_a_value_in_something_like_a_mask() -> None:
    assert "hunter2" not in vault("hunter2").mask("<secret>hunter2</secret>")


def test_each_line_of_a_key_is_masked() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----"
    masked = vault(key).mask("cut: MIIEvQIBADANBg … " + key.replace("\n", "\r\n"))
    assert "MIIE" not in masked
    assert "kqhk" not in masked


def test_the_vault_shows_names_only() -> None:
    held = vault("hunter2")
    assert repr(held) == str(held) == "SecretVault(PW)"
    assert held.names == ("PW",)
    assert "hunter2" not in repr(vars(held).get("_secrets"))
    for leak in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="never stored"):
            leak(held)


ENVIRON = {"SHOP_PW": "hunter2", "SHORT": "abc", "EMPTY": "", "SPACES": "   \n  "}


def test_declarations_name_a_source_and_a_scope(tmp_path: Path) -> None:
    file = tmp_path / "pw@home"
    file.write_text("from-file\n")
    held = SecretVault.declare(
        ["PW=env:SHOP_PW", "OTHER=env:SHOP_PW@pay.example,*.bank.example", f"FILE=file:{file}@shop.example"],
        "https://shop.example/start",
        ENVIRON,
    )
    assert held.names == ("PW", "OTHER", "FILE")
    assert held.fill("<secret>PW</secret>", "https://shop.example/login") == "hunter2"
    assert isinstance(held.fill("<secret>PW</secret>", "http://shop.example/login"), Refusal)
    assert held.fill("<secret>OTHER</secret>", "https://a.bank.example/") == "hunter2"
    assert isinstance(held.fill("<secret>OTHER</secret>", "https://shop.example/"), Refusal)
    assert held.fill("<secret>FILE</secret>", "https://shop.example/") == "from-file"


@pytest.mark.parametrize(
    ("declarations", "fault"),
    [
        (["PW=hunter2"], "secret PW: give where the value is, not the value"),
        (["PW=prompt:x"], "secret PW: give where the value is"),
        (["hunter2"], "secret number 1 must be written"),
        (["=env:SHOP_PW"], "secret number 1 must be written"),
        (["hunter 2=env:SHOP_PW"], "secret number 1 must be written"),
        (["PW=env:SHOP_PW", "PW=env:SHOP_PW"], "secret PW is declared twice"),
        (["PW=env:NOT_SET"], "NOT_SET is not set"),
        (["PW=env:hunter 2"], "name of an environment variable"),
        (["PW=env:"], "name of an environment variable"),
        (["PW=env:SHORT"], "secret PW is shorter than 4"),
        (["PW=env:EMPTY"], "secret PW is shorter than 4"),
        (["PW=env:SPACES"], "secret PW is shorter than 4"),
        (["PW=file:/nonexistent/file"], "cannot read /nonexistent/file: No such file"),
        (["PW=file:~no-such-user/pw"], "cannot read ~no-such-user/pw: No such file"),
        (["PW=env:SHOP_PW@*"], "origin rule"),
    ],
)
def test_bad_declarations_are_one_line_without_the_value(declarations: list[str], fault: str) -> None:
    with pytest.raises(BadInput, match=fault) as error:
        SecretVault.declare(declarations, "https://shop.example/", ENVIRON)
    report = "".join(traceback.format_exception(error.value))
    assert "\n" not in str(error.value)
    assert not any(value in str(error.value) for value in ("hunter", "abc"))
    assert "During handling" not in report


def test_without_a_start_address_the_scope_must_be_said() -> None:
    with pytest.raises(BadInput, match=r"PW=env:SHOP_PW@shop\.example"):
        SecretVault.declare(["PW=env:SHOP_PW"], None, ENVIRON)


def test_masking_a_page_costs_little() -> None:
    """Compared with encoding the page to JSON, which every step does anyway."""
    page = "some text of a page, 20 € — «quoted» \n" * 1_000
    held = SecretVault({f"S{i}": (f"value-number-{i}", HOME) for i in range(5)})
    masking = min(_seconds(lambda: held.mask(page)) for _ in range(5))
    encoding = min(_seconds(lambda: json.dumps(page)) for _ in range(5))
    assert masking < 20 * encoding


def _seconds(work: object) -> float:
    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
