"""The form fields in the request log."""

from __future__ import annotations

import pytest

from envs.suites.sites.requests import parse_form

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
