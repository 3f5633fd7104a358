"""Stands between a job and a server's HTTP port, and does something at one step of the sink.

before      the server has not been asked
unheard     the server has answered, and the job does not hear it
heard       the job has its answer
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

WHEN = ("before", "unheard", "heard")


class Bystander:
    """Calls `act` once, at the `nth` request of a path."""

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.path, self.when, self.left = "", "", 0
        self.act: Callable[[], None] = lambda: None
        self.acted = threading.Event()
        self._lock = threading.Lock()
        self.url = ""

    def waits(self, path: str, when: str, nth: int, act: Callable[[], None]) -> None:
        with self._lock:
            self.path, self.when, self.left, self.act = path, when, nth, act
            self.acted.clear()

    def due(self, path: str) -> str:
        """When to act, if this request is the one, or an empty text. It is asked once a request: by
        the end of this one the test may be at its next step.
        """
        with self._lock:
            if self.acted.is_set() or path != f"/admin/v2/writing{self.path}":
                return ""
            self.left -= 1
            return "" if self.left else self.when

    def acts(self) -> None:
        self.acted.set()  # first: who notices what is done may wait for the next step at once
        self.act()

    def forward(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        connection = HTTPConnection(self.target.hostname or "", self.target.port, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


@contextmanager
def standing_by(target: str) -> Iterator[Bystander]:
    """A bystander on a port of its own."""
    bystander = Bystander(target)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            due = bystander.due(self.path)
            if due == "before":
                bystander.acts()
            try:
                status, answer = bystander.forward(self.command, self.path, body)
                if due == "unheard":
                    bystander.acts()
                    return  # the connection ends without an answer
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                self.wfile.flush()
            except OSError:
                return  # the server or the job is gone
            if due == "heard":
                bystander.acts()

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Tests have nothing to read here."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    bystander.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield bystander
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
