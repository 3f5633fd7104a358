"""The other tasks of the loop: whether one is ready to run, or is about to be.

A turn of trio costs as much as a third of what the link does for a lone message (90,000
instructions), and most turns find nothing. So the link asks before it gives way.

*Ready tasks* are counted. `trio.lowlevel.current_statistics` does not count those that run in the
same turn as its caller, and costs more than all that is done here in a turn.

*What has come for others*, on a descriptor or from a thread, trio does not tell. But it waits for
all of that in an epoll, which can be polled itself, and the kernel says which one that is:
`/proc/self/fdinfo/N` of an epoll names the descriptors that it watches (`tfd` in proc(5)), and
trio's watches the link's poller. It watches each until the first event only (EPOLLONESHOT; "What
does this mean for Trio?" in its `_io_epoll.py`), so the poller itself does not count while the link
runs. If that changes, something has always come, and the link gives way as often as it can.

Deadlines are not seen: they are late by the time for which the link does not give way.

Invariant: `ready` is never too high, and right as soon as no task has been ready once.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import Final

import trio

OPEN_FILES: Final = Path("/proc/self/fdinfo")


class OtherTasks(trio.abc.Instrument):
    """See the module's docstring. While a task runs, it is not counted."""

    def __init__(self) -> None:
        self.ready = 0
        self._events: select.poll | None = None
        """None if the kernel does not tell."""

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        del task
        self.ready += 1

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        if self.ready:  # else it was ready before this was installed
            self.ready -= 1

    def find_events(self, watched: int) -> None:
        """Find trio's epoll, which has watched this descriptor. All open files are looked at, so it
        is for the start.
        """
        found = epoll_of(watched) if sys.platform == "linux" else None
        if found is not None:
            self._events = select.poll()
            self._events.register(found, select.POLLIN)

    def have_events(self) -> bool:
        """Whether something has come for others; a microsecond or two. True if nobody knows."""
        return self._events is None or bool(self._events.poll(0))


def epoll_of(watched: int) -> int | None:
    """The epoll of this process that watches a descriptor; None if the kernel does not tell."""
    wanted = b"tfd: %8d " % watched  # as `ep_show_fdinfo` in fs/eventpoll.c of Linux has it
    try:
        for name in os.listdir(OPEN_FILES):
            try:
                told = (OPEN_FILES / name).read_bytes()
            except FileNotFoundError:  # the one that lists the files
                continue
            if wanted in told:
                return int(name)
    except OSError:  # there is no such directory in this sandbox
        return None
    return None
