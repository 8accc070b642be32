"""Opening and writing files whose paths may name anything: pipes, devices, folders, links.

Opening a pipe waits until another process opens its other end. So a file is opened without waiting,
and what is no regular file is refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

Content = bytes | memoryview | Callable[[BinaryIO], None]
"""What a file is to hold: bytes, or what writes them."""

_NO_WAITING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; OSError, at once, for what is no regular file."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | _NO_WAITING)
    try:
        _check_regular(os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_regular(path: Path) -> bytes:
    """The content of a regular file; OSError, at once, for anything else."""
    with open_regular(path) as file:
        return file.read()


def write_whole(path: Path, content: Content, *, durable: bool = True) -> None:
    """Write a temporary file and rename it, so that the file is complete or not there at all.

    ``content`` is the bytes, or a function that writes them to the open file: what is large need
    not be in memory as a whole.
    A link stays a link, and the file that it leads to is written. A file that was there keeps its
    permissions. OSError for what is no regular file. ``durable``: wait until the disk has it.
    """
    target = Path(os.path.realpath(path))
    mode: int | None = None
    try:
        mode = os.stat(path).st_mode
        _check_regular(mode)
    except FileNotFoundError:
        pass  # the file is new
    temporary = target.with_name(f".{target.name[:80]}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            if mode is not None:
                with contextlib.suppress(OSError):  # a file system without permissions
                    os.chmod(temporary, stat.S_IMODE(mode))
            if callable(content):
                content(file)
            else:
                file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(target)
    except OSError:
        _remove(temporary)
        raise


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"expected a regular file, found {kind}")


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # the folder was removed, or is not ours, and the file with it
