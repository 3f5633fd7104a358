"""A door before ZooKeeper that breaks a connection at a chosen moment, or tells of that moment.

It forwards bytes in both directions. Once armed, it waits for the next write of the store: the
transaction of a write and its proof, or a sequential create. It breaks the connection either before
the request reaches ZooKeeper, or when its answer comes back, which the client does not get. It can
call something first.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

CREATE, SET_DATA, GET_CHILDREN, GET_CHILDREN_2, MULTI = 1, 5, 8, 12, 14
SLOTS = b"/magnetar-writers/"


def nothing() -> None:
    """What is called when nothing has to happen first."""


class Cutter:
    """See the module's docstring."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cuts = 0
        self._armed: tuple[str, Callable[[], object]] | None = None
        self._links: list[_Link] = []
        self._lists: tuple[int, Callable[[], object]] | None = None
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for link in self._links:
            link.close()

    def cut_request(self, before: Callable[[], object] = nothing) -> None:
        """The next write is not carried out."""
        self._armed = ("request", before)

    def cut_answer(self, before: Callable[[], object] = nothing) -> None:
        """The next write is carried out, and its answer lost."""
        self._armed = ("answer", before)

    def call_in_list(self, count: int, call: Callable[[], object]) -> None:
        """Call something when that many children were listed more, before the last answer."""
        self._lists = (count, call)

    @property
    def is_waiting_for_lists(self) -> bool:
        return self._lists is not None

    def break_all(self) -> None:
        """Close today's connections; new ones work."""
        for link in self._links:
            link.close()

    def listed(self) -> None:
        """Children are asked for."""
        if self._lists is not None:
            count, call = self._lists
            self._lists = (count - 1, call) if count > 1 else None
            if count == 1:
                call()

    def lose_the_way(self) -> None:
        """What is sent on today's connections arrives no more, either way; new ones work."""
        for link in self._links:
            link.is_dead = True

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._links.append(_Link(self, client, server))
                self._links[-1].start()

    def take(self, kind: str) -> Callable[[], object] | None:
        """What to do before the cut, if one is due at this point."""
        if self._armed is None or self._armed[0] != kind:
            return None
        (_, before), self._armed = self._armed, None
        self.cuts += 1
        return before


class _Link:
    """One connection: frames of a length and a body, in both directions."""

    def __init__(self, cutter: Cutter, client: socket.socket, server: socket.socket) -> None:
        self._cutter, self._client, self._server = cutter, client, server
        self._due: tuple[int, Callable[[], object]] | None = None
        """The request whose answer is to be lost."""
        self.is_dead = False

    def start(self) -> None:
        for source, target, read in (
            (self._client, self._server, self._requested),
            (self._server, self._client, self._answered),
        ):
            threading.Thread(target=self._forward, args=(source, target, read), daemon=True).start()

    def _forward(self, source, target, let) -> None:
        with contextlib.suppress(OSError, EOFError):
            is_first = True  # the handshake, which has no header
            while True:
                head = _exactly(source, 4)
                body = _exactly(source, *struct.unpack(">i", head))
                if not is_first and not let(body):
                    break
                is_first = False
                if not self.is_dead:
                    target.sendall(head + body)
        if not self.is_dead:  # else nobody hears of the end either
            self.close()

    def close(self) -> None:
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _requested(self, body: bytes) -> bool:
        xid, kind = struct.unpack_from(">ii", body)
        if kind in (GET_CHILDREN, GET_CHILDREN_2):
            self._cutter.listed()
        if kind == MULTI:
            (first,) = struct.unpack_from(">i", body, 8)
            is_write = first == SET_DATA
        else:
            is_write = kind == CREATE and SLOTS not in body
        if not is_write or xid < 0:
            return True
        before = self._cutter.take("request")
        if before is not None:
            before()
            return False
        before = self._cutter.take("answer")
        if before is not None:
            self._due = (xid, before)
        return True

    def _answered(self, body: bytes) -> bool:
        (xid,) = struct.unpack_from(">i", body)
        if self._due is None or self._due[0] != xid:
            return True
        self._due[1]()
        return False


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
