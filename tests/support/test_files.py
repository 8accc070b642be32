"""Files that are pipes, devices, folders and links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.support.files import open_regular, read_regular, write_whole


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(OSError, match="expected a regular file, found a pipe"):
            open_regular(path)
        with pytest.raises(OSError, match="expected a regular file, found a pipe"):
            write_whole(path, b"data")
    for act in (open_regular, lambda path: write_whole(path, b"data")):
        with pytest.raises(OSError, match="found a device"):
            act(Path(os.devnull))
        with pytest.raises(IsADirectoryError):
            act(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_writing_keeps_links_and_leaves_nothing_beside(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("old", "new"):
        target, link = tmp_path / "deep" / name, tmp_path / f"to-{name}"
        if name == "old":
            target.write_bytes(b"before")
        link.symlink_to(target)
        write_whole(link, b"after")
        assert link.is_symlink()
        assert target.read_bytes() == read_regular(link) == b"after"
    assert sorted(os.listdir(tmp_path / "deep")) == ["new", "old"]
    assert sorted(os.listdir(tmp_path)) == ["deep", "to-new", "to-old"]
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(circle, b"")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_written_again_keeps_its_permissions(tmp_path, mode):
    """What only its owner could read is not opened to others by a new version of it."""
    path = tmp_path / "private"
    path.write_bytes(b"before")
    path.chmod(mode)
    write_whole(path, b"after")
    assert path.stat().st_mode & 0o777 == mode
    assert path.read_bytes() == b"after"
