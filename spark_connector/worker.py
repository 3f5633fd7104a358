"""Spark's worker processes: they run many tasks, one after the other."""

from __future__ import annotations

import gc

_frozen = False


def freeze_once() -> None:
    """Let garbage collection pass over the modules: Spark's workers collect after each task, which
    takes 25 ms with all that is imported here. Call it when a task has imported them.
    """
    global _frozen
    if not _frozen:
        gc.freeze()
        _frozen = True
