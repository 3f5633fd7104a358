"""A line in the audit trail for each request that changes something (`core/security/audit.py`).

Named are method and path; bodies and queries may have secrets. Those that are refused for lack of a
right are denials, which `Access.check` notes. Requests that only read, and now and then make what
they are about, say so themselves (`note_made`); those that read by POST are marked
(`routes.ReadsOnly`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from magnetar.wire.http.rights import Needs

if TYPE_CHECKING:
    from magnetar.core.security.audit import AuditTrail
    from magnetar.wire.http.request import AdminRequest

READING: Final = ("GET", "HEAD")
UNAUDITED: Final = (Needs.OPEN, Needs.IDENTITY, Needs.READER, Needs.WRITER)
"""Rows that change nothing by other methods: lookups and plans, those that write messages and move
cursors, and what anybody may ask for without an end.
"""


class Ending:
    """How a request ended; an exception's class until then."""

    status = 0


@contextmanager
def audited(request: AdminRequest) -> Iterator[Ending]:
    """Write the line when the request is done, before it is answered."""
    trail = request.services.access.audit
    outcome = Ending()
    if trail is None:
        yield outcome
        return
    said = "failed"
    try:
        yield outcome
        said = f"status {outcome.status}"
    except Exception as error:
        said = f"refused: {error}"
        raise
    finally:
        _note(trail, request, (), said)


def note_made(request: AdminRequest, what: str) -> None:
    """Write a line about what a request has made that is not audited as such."""
    trail = request.services.access.audit
    if trail is not None:
        _note(trail, request, (what,), "done")


def _note(trail: AuditTrail, request: AdminRequest, resources: Sequence[str], outcome: str) -> None:
    operation = f"{request.request.method} {request.request.url.path.rstrip('/')}"
    if request.original is not None:
        operation += f" through {request.identity.name}"
    who = request.original or request.identity
    trail.changed(who, request.host, operation, resources, outcome)
