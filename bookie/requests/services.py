"""What all connections of one bookie share."""

from __future__ import annotations

from magnetar.bookie.requests.authentication import BookieAccess
from magnetar.bookie.requests.back_pressure import BackPressure
from magnetar.bookie.requests.deadlines import Deadlines
from magnetar.bookie.requests.in_progress import InProgress
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.reads.read_places import ReadPlaces
from magnetar.bookie.requests.reads.read_turns import ReadTurns
from magnetar.bookie.requests.request_counters import RequestCounters
from magnetar.bookie.running import RunningBookie
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.core.link.front import TlsContext
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES, PAUSE_REQUESTS
from magnetar.core.ports.disk import DiskUsage


class BookieServices:
    """The bookie's ledgers, and what bounds the requests of all connections together."""

    def __init__(
        self,
        ledgers: ServedLedgers,
        running: RunningBookie,
        limits: RequestLimits,
        tls: TlsContext | None = None,
        access: BookieAccess | None = None,
    ) -> None:
        """Without `tls`, clients that ask for it are refused; without `access`, nobody has to
        say who he is.
        """
        self.tls = tls
        self.access = access
        self.ledgers = ledgers
        self._disk = running.disk
        self.limits = limits
        self.deadlines = Deadlines()
        self.adds = InProgress(limits.max_adds_in_progress_limit, PAUSE_PUBLISHES)
        self.reads = InProgress(limits.max_reads_in_progress_limit, PAUSE_REQUESTS)
        """Reads of all connections that wait, long polls not counted."""
        now = running.storage.machine.clock.monotonic
        self.places = ReadPlaces(limits, self.reads, now)
        self.turns = ReadTurns(now)
        self.counters = RequestCounters()
        self.storage = BackPressure(running, self.adds, limits, now)
        """What the link is to serve."""

    def usage(self) -> DiskUsage:
        """Of the disks with the ledgers."""
        return self._disk.usage
