"""Work of the Python client that goes on while the server comes and goes, noted for the judge."""

import threading
import time
from typing import Any

import pulsar

from .history import Got, Sent

IN_FLIGHT_MAX = 100
AHEAD_MAX = 1_000
"""The producer waits for the consumer when it is so many messages ahead."""
DEADLINE_SECONDS = 45


class Work:
    """A producer and a consumer, each with a thread of its own."""

    def __init__(self, client: pulsar.Client, topic: str, kind: str, *, batched: bool) -> None:
        self.sent: list[Sent] = []
        self.got: list[Got] = []
        self.failed: list[object] = []
        self._seen: set[int] = set()
        self._ending = threading.Event()
        self._drained = threading.Event()
        self._room = threading.Semaphore(IN_FLIGHT_MAX)
        self._changed = threading.Condition()
        self._count = 0
        types = {
            name.replace("_", ""): each for name, each in pulsar.ConsumerType.__members__.items()
        }
        self._consumer = client.subscribe(topic, "s", types[kind.replace("_", "")])
        self._producer = client.create_producer(
            topic,
            send_timeout_millis=0,
            batching_enabled=batched,
            batching_max_messages=10,
            max_pending_messages=0,
        )
        self._threads = [
            threading.Thread(target=self._send, daemon=True),
            threading.Thread(target=self._receive, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def more(self, count: int) -> None:
        """Waits until so many more receipts have come."""
        with self._changed:
            goal = len(self.sent) + count
            assert self._changed.wait_for(lambda: len(self.sent) >= goal, DEADLINE_SECONDS)

    def end(self) -> None:
        """Sends no more, and waits until all that was sent has come."""
        self._ending.set()
        self._threads[0].join()
        with self._changed:
            done = self._changed.wait_for(self._complete, DEADLINE_SECONDS)
        self._drained.set()
        self._threads[1].join()
        self._producer.close()
        self._consumer.close()
        assert not self.failed, self.failed
        missing = sorted(set(range(self._count)) - self._seen)
        assert done, f"{len(self.sent)} of {self._count} have receipts; never came: {missing[:20]}"

    def _complete(self) -> bool:
        return len(self.sent) == self._count == len(self._seen)

    def _send(self) -> None:
        while not self._ending.is_set():
            with self._changed:
                if not self._changed.wait_for(self._may_send, 0.05):
                    continue
            if not self._room.acquire(timeout=0.05):
                continue
            number, self._count = self._count, self._count + 1
            body, key = b"%d" % number, f"k{number % 10}"
            self._producer.send_async(body, self._note(number, time.time()), partition_key=key)
        self._producer.flush()

    def _may_send(self) -> bool:
        return self._count - len(self._seen) < AHEAD_MAX

    def _note(self, number: int, began: float) -> Any:
        def done(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
            self._room.release()
            with self._changed:
                if result == pulsar.Result.Ok:
                    self.sent.append(Sent(number, began, time.time(), str(message_id)))
                else:
                    self.failed.append((number, result))
                self._changed.notify_all()

        return done

    def _receive(self) -> None:
        while not self._drained.is_set():
            try:
                message = self._consumer.receive(100)
            except pulsar.Timeout:
                continue
            number = int(message.data())
            # this client knows no receipts of acknowledgements
            self.got.append(Got(number, str(message.message_id()), time.time(), 0.0))
            self._consumer.acknowledge(message)
            with self._changed:
                self._seen.add(number)
                self._changed.notify_all()
