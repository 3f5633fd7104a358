"""The other tasks of the loop: how many are ready to run.

`trio.lowlevel.current_statistics` does not count those that run in the same turn as its caller, and
costs more than all that is done here in a turn.

Invariant: `ready` is never too high, and right as soon as no task has been ready once.
"""

from __future__ import annotations

import trio


class OtherTasks(trio.abc.Instrument):
    """See the module's docstring. While a task runs, it is not counted."""

    def __init__(self) -> None:
        self.ready = 0

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        del task
        self.ready += 1

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        if self.ready:  # else it was ready before this was installed
            self.ready -= 1
