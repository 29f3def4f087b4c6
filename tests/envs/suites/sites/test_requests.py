"""The form fields in the request log."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.suites.sites.requests import LOG, Request, parse_form, read_log

MULTIPART = (
    b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\nCaf\xc3\xa9\r\n'
    b'--x\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\n'
    b"Content-Type: image/png\r\n\r\n\x89PNG\r\n--x--\r\n"
)


@pytest.mark.parametrize(
    ("kind", "body", "fields"),
    [
        ("application/x-www-form-urlencoded", b"a=1&b=x+y&a=2&c=", (("a", "1"), ("b", "x y"), ("a", "2"), ("c", ""))),
        ("application/x-www-form-urlencoded; charset=utf-8", b"a=%C3%A9", (("a", "é"),)),
        ("multipart/form-data; boundary=x", MULTIPART, (("title", "Café"), ("picture", "a.png"))),
        ("multipart/form-data", b"no boundary", ()),
        ("application/json", b'{"a": 1}', ()),
        ("", b"a=1", ()),
    ],
)
def test_the_fields_of_a_form(kind: str, body: bytes, fields: tuple[tuple[str, str], ...]) -> None:
    assert parse_form(kind, body) == fields


def test_a_form_with_a_unicode_line_separator_is_logged_on_one_line(tmp_path: Path) -> None:
    form = (("text", "one\u2028two\u2029three\u0085four\r\nfive\x0c"),)
    sent = [Request(number=number, method="POST", path="/", form=form, status=200) for number in range(2)]
    incomplete = sent[0].model_dump_json()[:20]
    lines = "".join(request.model_dump_json() + "\n" for request in sent)
    (tmp_path / LOG).write_text(lines + incomplete, encoding="utf-8")
    assert read_log(tmp_path) == tuple(sent)
    (tmp_path / LOG).write_text(incomplete, encoding="utf-8")
    assert read_log(tmp_path) == ()
