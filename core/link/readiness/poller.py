"""One descriptor that stands for many: epoll on Linux, kqueue elsewhere.

Both are themselves pollable, so the loop waits for the poller's own descriptor in trio and then
asks it, without waiting, which sockets are ready. That nesting costs half of what one trio task per
connection does (12 against 22 microseconds for a wake-up with one message).

`EpollPoller` has a compiled twin.
"""

import select
import sys
from collections.abc import Callable
from typing import Final, Protocol

from magnetar.core.native import quickest

READ: Final = 1
WRITE: Final = 4
GONE: Final = 8 | 16
"""Both directions are closed, or reset. It is reported without registration, again and again.

All three are epoll's own numbers, so that what it says needs no translation.
"""


class Poller(Protocol):
    """Level-triggered readiness for many descriptors."""

    def fileno(self) -> int: ...

    def watch(self, fd: int, interest: int) -> None:
        """Begin to watch `fd` for READ, WRITE, both or neither."""
        ...

    def change(self, fd: int, interest: int) -> None: ...

    def forget(self, fd: int) -> None: ...

    def ready(self, wait_seconds: float, count_max: int, /) -> list[tuple[int, int]]:
        """(fd, READ|WRITE) pairs, at once or as soon as there are any within that time; of a broken
        socket perhaps just GONE, where epoll is.
        """
        ...

    def close(self) -> None: ...


if sys.platform == "linux":
    assert (select.EPOLLIN, select.EPOLLOUT) == (READ, WRITE)
    assert select.EPOLLERR | select.EPOLLHUP == GONE

    class EpollPoller:
        """The kernel keeps the list; epoll hands out ready sockets in rotation, which is fair."""

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self.fileno = self._epoll.fileno
            self.ready = self._epoll.poll

        def watch(self, fd: int, interest: int) -> None:
            self._epoll.register(fd, interest)

        def change(self, fd: int, interest: int) -> None:
            self._epoll.modify(fd, interest)

        def forget(self, fd: int) -> None:
            self._epoll.unregister(fd)

        def close(self) -> None:
            self._epoll.close()

    new_poller: Callable[[], Poller] = quickest(
        EpollPoller, "magnetar.core.link.readiness.compiled"
    )

else:

    class KqueuePoller:
        """The same for macOS and the BSDs, where read and write are separate filters."""

        def __init__(self) -> None:
            self._kqueue = select.kqueue()
            self._interest: dict[int, int] = {}
            self.fileno = self._kqueue.fileno

        def watch(self, fd: int, interest: int) -> None:
            self._interest[fd] = 0
            self.change(fd, interest)

        def change(self, fd: int, interest: int) -> None:
            before = self._interest[fd]
            changes = []
            for bit, kind in ((READ, select.KQ_FILTER_READ), (WRITE, select.KQ_FILTER_WRITE)):
                if (before ^ interest) & bit:
                    flag = select.KQ_EV_ADD if interest & bit else select.KQ_EV_DELETE
                    changes.append(select.kevent(fd, kind, flag))
            if changes:
                self._kqueue.control(changes, 0, 0)
            self._interest[fd] = interest

        def forget(self, fd: int) -> None:
            self.change(fd, 0)
            del self._interest[fd]

        def ready(self, wait_seconds: float, count_max: int, /) -> list[tuple[int, int]]:
            return [
                (event.ident, READ if event.filter == select.KQ_FILTER_READ else WRITE)
                for event in self._kqueue.control(None, count_max, wait_seconds)
            ]

        def close(self) -> None:
            self._kqueue.close()

    def new_poller() -> Poller:
        return KqueuePoller()
