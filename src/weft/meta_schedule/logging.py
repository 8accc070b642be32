"""Log files of a search: one for all tasks together, one for each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from logging import Logger
from pathlib import Path
from typing import Final

NAME: Final = "weft.meta_schedule"
_FORMAT: Final = "%(asctime)s [%(levelname)s] %(message)s"
_LONGEST: Final = 100
"""Characters of a task's name that become part of the name of its file."""


def get_logger(name: str) -> Logger:
    """The logger of that name, as the standard library gives it."""
    return logging.getLogger(name)


def get_loggers_from_work_dir(work_dir: str, task_names: Sequence[str]) -> list[Logger]:
    """A logger for each task, whose messages go to ``work_dir/logs`` alone.

    What is logged under ``weft.meta_schedule`` goes to ``task_scheduler.log`` there.

    Args:
        work_dir: the folder of the search.
        task_names: the tasks, in order.
    """
    folder = Path(work_dir) / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    _write_to(get_logger(NAME), folder / "task_scheduler.log")
    digits = len(str(max(0, len(task_names) - 1)))
    loggers = []
    for number, task in enumerate(task_names):
        name = f"task_{number:0{digits}d}_{_file_name(task)}"
        logger = get_logger(f"{NAME}.{name}")
        logger.propagate = False
        _write_to(logger, folder / f"{name}.log")
        loggers.append(logger)
    return loggers


def _file_name(task: str) -> str:
    return "".join([c if c.isalnum() or c in "-_." else "_" for c in task[:_LONGEST]])


def _write_to(logger: Logger, path: Path) -> None:
    """Let a logger write to this file and to no other one of an earlier search."""
    for handler in list(logger.handlers):
        if isinstance(handler, logging.FileHandler):
            logger.removeHandler(handler)
            handler.close()
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter(_FORMAT, "%Y-%m-%d %H:%M:%S"))
    logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.DEBUG if logger.name != NAME else logging.INFO)
