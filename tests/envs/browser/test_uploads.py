"""Checks of the files that may be uploaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.browser import uploads
from envs.browser.uploads import allowed_upload, uploadable


def folder_with(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "files"
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x", encoding="utf-8")
    return folder


def test_what_is_listed_is_what_may_be_uploaded(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "b.txt", "a/c.txt", ".env", ".git/config")
    (tmp_path / "outside.txt").write_text("x", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "gone.txt").symlink_to(tmp_path / "gone.txt")
    (folder / "inner.txt").symlink_to(folder / "b.txt")
    listed = uploadable(folder)
    assert listed == ("a/c.txt", "b.txt", "inner.txt")
    assert all(allowed_upload(folder, path) is not None for path in listed)


def test_without_a_folder_nothing_is_listed(tmp_path: Path) -> None:
    assert uploadable(None) == () == uploadable(tmp_path / "none")


def test_a_large_folder_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "SEARCHED", 3)
    assert uploadable(folder_with(tmp_path, *"abcde")) == ("a", "b", "c")
