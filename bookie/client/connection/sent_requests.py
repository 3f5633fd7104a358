"""Requests that a bookie has not answered yet, matched with its responses. Pure.

    adds        by ledger, in the order of sending; a response counts for the first that has that
                entry and no response for it (version 2 has no transaction ids)
    reads       by ledger and entry, in the order of sending
    all others  by their number: the request id of a batch read, or a transaction id

One `SentAdds` is a run of entries, which ends with its last response or its first failure.

A bookie need not answer reads of one entry in order. Of the same kind that does not matter. But the
answer to a plain read would be taken for that of a fencing one: "no such entry", which the bookie
said before the fence, and after which it may have taken an add. So fencing reads have a connection
of their own (`connections.py`), and one connection never has both kinds. (Apache's client matches
both by one key, `EntryCompletionKey` and `completionObjectsV2Conflicts` in
`PerChannelBookieClient.java` of 4.18.)

Invariant: each request ends once, by a response, by `expire` or by `fail_all`; a response that
belongs to none is ignored: its request has expired.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from magnetar.bookie.rpc.messages import BookieMessage, Status
from magnetar.core.kernel.errors import BrokerError

AddsDone = Callable[[Status | BrokerError], None]
Replied = Callable[[BookieMessage | BrokerError], None]
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class SentAdds:
    """A run that was sent."""

    __slots__ = ("deadline", "done", "early", "ended", "last", "ledger_id", "next", "size")

    def __init__(
        self, ledger_id: int, first: int, last: int, size: int, deadline: float, done: AddsDone
    ) -> None:
        self.ledger_id = ledger_id
        self.next = first
        """The first entry without a response."""
        self.last = last
        self.early: set[int] = set()
        """Entries behind `next` that have one."""
        self.size = size
        self.deadline = deadline
        self.done = done
        self.ended = False

    def lacks(self, entry_id: int) -> bool:
        """Whether it waits for a response to this entry."""
        return self.next <= entry_id <= self.last and entry_id not in self.early

    def answered(self, first: int, last: int) -> None:
        """Entries of this run are stored."""
        if first == self.next:
            self.next = last + 1
            while self.next in self.early:
                self.early.discard(self.next)
                self.next += 1
        else:
            self.early.update(range(first, last + 1))


class SentRequest:
    """Any other request that was sent."""

    __slots__ = ("deadline", "ended", "replied")

    def __init__(self, deadline: float, replied: Replied) -> None:
        self.deadline = deadline
        self.replied = replied
        self.ended = False


class SentRequests:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.adds_bytes = 0
        """Of all runs without all their responses."""
        self._adds: _Queues[int, SentAdds] = _Queues()
        self._requests: _Queues[Hashable, SentRequest] = _Queues()
        self._sent: deque[SentAdds | SentRequest] = deque()
        """All, and some that have ended, in the order of sending."""

    def __bool__(self) -> bool:
        return bool(self._adds.queues or self._requests.queues)

    # -- sending ------------------------------------------------------------------------------

    def add(self, sent: SentAdds) -> None:
        self._adds.put(sent.ledger_id, sent)
        self._sent.append(sent)
        self.adds_bytes += sent.size

    def request(self, key: Hashable, sent: SentRequest) -> None:
        self._sent.append(sent)
        self._requests.put(key, sent)

    # -- responses ----------------------------------------------------------------------------

    def adds_answered(self, status: Status, ledger_id: int, first: int, count: int) -> None:
        """Responses to consecutive adds, which ended alike."""
        end = first + count
        while first < end:
            sent = self._waiting_for(ledger_id, first)
            if sent is None:
                first += 1
                continue
            if status is not Status.OK:
                self._end_adds(sent, status)
                first += 1
                continue
            last = min(end - 1, sent.last)
            if sent.early:
                last = first
            sent.answered(first, last)
            if sent.next > sent.last:
                self._end_adds(sent, status)
            first = last + 1

    def _waiting_for(self, ledger_id: int, entry_id: int) -> SentAdds | None:
        for sent in self._adds.queues.get(ledger_id, ()):
            if sent.lacks(entry_id):
                return sent
        return None

    def _end_adds(self, sent: SentAdds, result: Status | BrokerError) -> None:
        self._adds.remove(sent.ledger_id, sent)
        self.adds_bytes -= sent.size
        self._end(sent)
        sent.done(result)

    def answered(self, key: Hashable, response: BookieMessage) -> None:
        """The response to any other request."""
        sent = self._requests.take(key)
        if sent is not None and not sent.ended:
            self._end(sent)
            sent.replied(response)

    def _end(self, sent: SentAdds | SentRequest) -> None:
        sent.ended = True
        order = self._sent
        while order and order[0].ended:
            order.popleft()

    # -- without responses --------------------------------------------------------------------

    def expire(self, now: float, error: BrokerError) -> int:
        """End what should have been answered by now; how much there was.

        A read stays in its queue, for its response may still come.
        """
        late = [sent for sent in self._sent if sent.deadline <= now and not sent.ended]
        for sent in late:
            self._fail(sent, error)
        return len(late)

    def _fail(self, sent: SentAdds | SentRequest, error: BrokerError) -> None:
        if sent.ended:
            return
        if isinstance(sent, SentAdds):
            self._end_adds(sent, error)
        else:
            self._end(sent)
            sent.replied(error)

    def fail_all(self, error: BrokerError) -> int:
        """The connection has ended; how much had no response. What is sent meanwhile belongs to the
        next one.
        """
        sent, self._sent = self._sent, deque()
        self._adds, self._requests = _Queues(), _Queues()
        self.adds_bytes = 0
        failed = 0
        for each in sent:
            if not each.ended:
                each.ended = True
                failed += 1
                if isinstance(each, SentAdds):
                    each.done(error)
                else:
                    each.replied(error)
        return failed


class _Queues(Generic[Key, Item]):
    """Queues by key, of which none is empty."""

    def __init__(self) -> None:
        self.queues: dict[Key, deque[Item]] = {}

    def put(self, key: Key, item: Item) -> None:
        queue = self.queues.get(key)
        if queue is None:
            self.queues[key] = deque((item,))
        else:
            queue.append(item)

    def take(self, key: Key) -> Item | None:
        queue = self.queues.get(key)
        if queue is None:
            return None
        item = queue.popleft()
        if not queue:
            del self.queues[key]
        return item

    def remove(self, key: Key, item: Item) -> None:
        queue = self.queues[key]
        if queue[0] is item:
            queue.popleft()
        else:
            queue.remove(item)
        if not queue:
            del self.queues[key]
