"""One connection of a client: each request is carried out on the bookie, and answered.

Adds are plain calls: a row of consecutive adds of version 2 is one run, one append to the journal,
and one callback, which packs all responses. Reads have a queue of their own (`reads.py`).

Without mechanisms authentication is off, as with Apache's default: a client that offers a plugin
is told so, and may go on (`AuthHandler.java`, `AuthProviderFactoryFactory.java` of BookKeeper
4.18). With some, `authentication.py` says what is answered until a client has proved who it is, and
to one that may only read some ledgers. Whoever may do everything is not looked at again.

Invariant: each request gets one response, unless its connection is closed.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from magnetar.bookie.format.entries import ENTRY_BYTES_MIN, LENGTH_BYTES, Run
from magnetar.bookie.requests.authentication import (
    PROOF_SECONDS,
    Admission,
    Confined,
    PeerGrant,
)
from magnetar.bookie.requests.deadlines import Deadline
from magnetar.bookie.requests.errors import status_of
from magnetar.bookie.requests.notes import Notes
from magnetar.bookie.requests.reads.reads import Reads
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.credentials import AUTH_DISABLED
from magnetar.bookie.rpc.messages import (
    Add,
    Added,
    Authenticate,
    BatchRead,
    BookieInfo,
    BookieMessage,
    Forced,
    ForceLedger,
    GetBookieInfo,
    ListEntries,
    Read,
    ReadLac,
    StartTls,
    Status,
    StatusOnly,
    TlsStarted,
    Unanswerable,
    WriteLac,
    WroteLac,
)
from magnetar.bookie.rpc.version3 import Header
from magnetar.bookie.rpc.wire import BookieWire, Call
from magnetar.core.kernel.errors import BrokerError, Invalid, Unauthenticated
from magnetar.core.link.connection import Connection
from magnetar.core.link.layers.tls import TlsWire


class BookieSession:
    """See the module's docstring."""

    silence_seconds_allowed = math.inf
    """A writer may pause for hours. The system is asked whether its peer is there (`quiet`)."""

    def __init__(self, services: BookieServices, connection: Connection, wire: BookieWire) -> None:
        self._services = services
        self._ledgers = services.ledgers
        self._connection = connection
        self._wire = wire
        self._notes = Notes(connection)
        self._reads = Reads(services, connection, wire, self._notes)
        self._gate: Admission | Confined | None = None
        """None once the client may do everything."""
        self._deadline: Deadline | None = None
        """When the connection ends for want of a proof."""
        self._tls: TlsWire | None = None
        if services.access is not None:
            self._gate = Admission(services.access, connection.host)
            self._end_in(PROOF_SECONDS, "it has not said who it is")
        connection.probe()

    def handle(self, event: Call | Adds, /) -> None:
        """Carry out a request, or a row of adds."""
        if self._gate is not None and self._is_held_up(event, self._gate):
            return
        if isinstance(event, Adds):
            self._add_row(event)
        else:
            _HANDLERS[type(event.request)](self, event)

    # -- who it is ----------------------------------------------------------------------------

    def _is_held_up(self, event: Call | Adds, gate: Admission | Confined) -> bool:
        """Whether a request is answered here, since its client may not have it carried out."""
        if isinstance(gate, Admission) and self._tls is not None and not gate.is_step(event):
            shown = gate.take_certificate(self._tls.tls)
            if shown is not None:
                self._let_in(shown)
                return self._gate is not None and self._is_held_up(event, self._gate)
        try:
            answer = gate.answer(event)
        except Unauthenticated as error:
            if isinstance(event, Call) and isinstance(event.header, Header):
                self._reply(event, StatusOnly(Status.UNAUTHORIZED))
            self._connection.flush()
            self._connection.end(str(error))
            return True
        if isinstance(gate, Admission) and gate.grant is not None:
            self._let_in(gate.grant)
        if isinstance(event, Adds):
            self._wire.reply_adds(event, Status.UNAUTHORIZED)
            self._connection.touch()
        elif isinstance(answer, BookieMessage):
            self._reply(event, answer)
        return answer is not None

    def _let_in(self, grant: PeerGrant) -> None:
        self._gate = None if grant.ledgers is None else Confined(grant.ledgers)
        self._end_in(grant.expires_in, "its proof of who it is has expired")

    def _end_in(self, seconds: float | None, why: str) -> None:
        """End the connection after that time, unless there is another proof before."""
        deadlines = self._services.deadlines
        if self._deadline is not None:
            deadlines.cancel(self._deadline)
        self._deadline = None
        if seconds is not None:
            self._deadline = deadlines.call_in(seconds, partial(self._connection.end, why))

    def _authenticate(self, call: Call) -> None:
        """Of a client that was let in: another proof, or something that need not be known here.
        Java's SASL says one more, empty message when it knows that it is let in.
        """
        request: Any = call.request
        access = self._services.access
        if access is None or not request.payload or request.plugin not in access.mechanisms:
            self._reply(call, Authenticate(AUTH_DISABLED, b""))
            return
        self._gate = Admission(access, self._connection.host)
        self._end_in(PROOF_SECONDS, "it has not said who it is")
        self._is_held_up(call, self._gate)

    # -- adds ---------------------------------------------------------------------------------

    def _add_row(self, row: Adds) -> None:
        connection, run = self._connection, row.run
        if not connection.writes:
            connection.will_write()
        size = run.size
        services = self._services
        refusal = services.storage.refusal(run.count, urgent=row.high_priority)
        connection.storing(size)
        services.adds.begin(connection, run.count)
        try:
            if refusal is not None:
                raise refusal
            self._ledgers.add(
                run,
                row.master_key,
                partial(self._added_row, row, size),
                recovery=row.recovery,
                urgent=row.high_priority,
            )
        except BrokerError as error:
            self._added_row(row, size, error)

    def _added_row(self, row: Adds, size: int, error: BrokerError | None) -> None:
        connection = self._connection
        connection.stored(size, proves=error is None)
        self._services.adds.end(row.run.count)
        self._services.counters.added(row.run.count, good=error is None)
        if connection.fd >= 0:
            self._wire.reply_adds(row, status_of(error))
            connection.touch()

    def _add(self, call: Call) -> None:
        add: Any = call.request
        connection = self._connection
        connection.will_write()
        size = len(add.entry)
        services = self._services
        refusal = services.storage.refusal(1, urgent=add.high_priority)
        connection.storing(size)
        services.adds.begin(connection)
        try:
            if refusal is not None:
                raise refusal
            self._ledgers.add(
                run_of(add),
                add.master_key,
                partial(self._added, call, size),
                recovery=add.recovery,
                urgent=add.high_priority,
            )
        except BrokerError as error:
            self._added(call, size, error)

    def _added(self, call: Call, size: int, error: BrokerError | None) -> None:
        add: Any = call.request
        self._connection.stored(size, proves=error is None)
        self._services.adds.end()
        self._services.counters.added(1, good=error is None)
        status = status_of(error)
        self._reply(call, Added(status, add.ledger_id, add.entry_id))

    # -- other requests -----------------------------------------------------------------------

    def _read(self, call: Call) -> None:
        self._reads.take(call)

    def _write_lac(self, call: Call) -> None:
        request: Any = call.request
        write = partial(
            self._ledgers.write_lac, request.ledger_id, request.master_key, request.packet
        )
        self._notes.write(write, partial(self._wrote_lac, call))

    def _wrote_lac(self, call: Call, error: BrokerError | None) -> None:
        request: Any = call.request
        status = status_of(error)
        self._services.counters.answered(request, status)
        self._reply(call, WroteLac(status, request.ledger_id))

    def _force(self, call: Call) -> None:
        self._notes.write(self._ledgers.force, partial(self._forced, call))

    def _forced(self, call: Call, error: BrokerError | None) -> None:
        request: Any = call.request
        status = status_of(error)
        self._services.counters.answered(request, status)
        self._reply(call, Forced(status, request.ledger_id))

    def _info(self, call: Call) -> None:
        request: Any = call.request
        usage = self._services.usage()
        total = usage.total_bytes if request.total else None
        free = usage.free_bytes if request.free else None
        self._services.counters.answered(request, Status.OK)
        self._reply(call, BookieInfo(Status.OK, total, free))

    def _start_tls(self, call: Call) -> None:
        """Answer in plain bytes, and encrypt what follows. Without certificates, and a second time,
        this is refused (`BookieRequestProcessor.processStartTLSRequestV3`).
        """
        context, connection = self._services.tls, self._connection
        if context is None or connection.layered:
            self._reply(call, TlsStarted(Status.BAD_REQUEST))
            return
        self._reply(call, TlsStarted(Status.OK))
        connection.flush()
        if connection.open:
            self._tls = TlsWire(context.current, self._wire)
            connection.serve(self._tls, self)

    def _unanswerable(self, call: Call) -> None:
        request: Any = call.request
        self._reply(call, StatusOnly(request.status))

    def _reply(self, call: Call, response: BookieMessage) -> None:
        if self._connection.fd >= 0:
            self._wire.reply(call, response)
            self._connection.touch()

    # -- the connection -----------------------------------------------------------------------

    def quiet(self) -> None:
        """Never called: any silence is allowed."""

    def relieved(self) -> None:
        """The client has received earlier responses: there is room for more."""
        self._reads.relieved()

    def closed(self, reason: str, /) -> None:
        self._end_in(None, "")
        self._reads.close()


def run_of(add: Add) -> Run:
    """The run of one add; `Invalid` if its entry is not the one that it says."""
    entry = add.entry
    if len(entry) < ENTRY_BYTES_MIN:
        raise Invalid(f"an entry of {len(entry)} bytes is too short")
    ids = (
        int.from_bytes(entry[:8], "big", signed=True),
        int.from_bytes(entry[8:16], "big", signed=True),
    )
    if ids != (add.ledger_id, add.entry_id):
        raise Invalid(f"an add of entry {add.ledger_id}:{add.entry_id} with entry {ids}")
    blob = len(entry).to_bytes(LENGTH_BYTES, "big") + entry
    return Run(add.ledger_id, add.entry_id, blob, array("I", (0, len(blob))))


_HANDLERS: Final[Mapping[type[BookieMessage], Callable[[BookieSession, Call], None]]] = {
    Add: BookieSession._add,
    Read: BookieSession._read,
    BatchRead: BookieSession._read,
    ReadLac: BookieSession._read,
    ListEntries: BookieSession._read,
    WriteLac: BookieSession._write_lac,
    ForceLedger: BookieSession._force,
    GetBookieInfo: BookieSession._info,
    Authenticate: BookieSession._authenticate,
    StartTls: BookieSession._start_tls,
    Unanswerable: BookieSession._unanswerable,
}
