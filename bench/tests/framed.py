"""A server for tests that hears frames behind four bytes of size; what they say is the tests'.

One thread is enough: everything is answered at once.
"""

import selectors
import socket
import threading
from collections.abc import Callable

Hear = Callable[[socket.socket, bytes], bool]
"""Act on one frame; false ends its connection."""


class Framed:
    """Answers on a port of its own until the block ends."""

    def __init__(self, hear: Hear) -> None:
        self.hear = hear
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.stopped, self.stop = socket.socketpair()
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self) -> "Framed":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.close()
        self.thread.join(10)
        self.listener.close()
        self.stopped.close()

    def serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            selector.register(self.stopped, selectors.EVENT_READ)
            buffers: dict[socket.socket, bytearray] = {}
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self.stopped:
                        for each in buffers:
                            each.close()
                        return
                    if key.fileobj is self.listener:
                        accepted, _ = self.listener.accept()
                        selector.register(accepted, selectors.EVENT_READ)
                        buffers[accepted] = bytearray()
                    elif not self.read(key.fileobj, buffers[key.fileobj]):
                        selector.unregister(key.fileobj)
                        key.fileobj.close()
                        del buffers[key.fileobj]

    def read(self, peer: socket.socket, buffer: bytearray) -> bool:
        """What has come; false when the connection is over."""
        try:
            got = peer.recv(1 << 20)
            buffer += got
            while len(buffer) >= 4 and len(buffer) >= 4 + int.from_bytes(buffer[:4], "big"):
                size = int.from_bytes(buffer[:4], "big")
                frame = bytes(buffer[4 : 4 + size])
                del buffer[: 4 + size]
                if not self.hear(peer, frame):
                    return False
        except (BrokenPipeError, ConnectionResetError):
            return False  # it has gone with something of ours unheard
        return bool(got)
