"""What the server answers to who writes: what to try again, and what not to."""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.errors import WireError
from magnetar.spark_connector.errors import ConnectorError
from magnetar.wire.kafka import errors as codes

_NAMES: Final = {
    code: name for name, code in vars(codes).items() if isinstance(code, int) and name.isupper()
}
LEADER_NOT_AVAILABLE: Final = 5
DUPLICATE: Final = 46
"""DUPLICATE_SEQUENCE_NUMBER: it is there already."""
RETRIED: Final = frozenset(
    [
        LEADER_NOT_AVAILABLE,
        codes.UNKNOWN_TOPIC,  # of a topic that was there: it is being loaded
        codes.NOT_LEADER,
        codes.REQUEST_TIMED_OUT,
        codes.COORDINATOR_LOAD_IN_PROGRESS,
        codes.COORDINATOR_NOT_AVAILABLE,
        codes.NOT_COORDINATOR,
        codes.NOT_ENOUGH_REPLICAS,
        codes.CONCURRENT_TRANSACTIONS,
        codes.STORAGE_ERROR,
    ]
)
"""As Kafka's clients do (`RetriableException` in `Errors.java` of 4.3)."""


_TAKEN_OVER: Final = "a later batch or another attempt has taken over"
_GIVEN_UP: Final = "its transaction is over: it was given up after its time-out"
MEANING: Final = {
    codes.INVALID_PRODUCER_EPOCH: _TAKEN_OVER,
    codes.PRODUCER_FENCED: _TAKEN_OVER,
    codes.INVALID_TXN_STATE: _GIVEN_UP,
    codes.INVALID_PRODUCER_ID_MAPPING: _GIVEN_UP,
    codes.OUT_OF_ORDER: "another attempt writes the same rows at this moment",
}
"""What codes mean to an attempt of a task."""


class WriteError(ConnectorError):
    """Rows are refused, and would be again."""


class Unready(Exception):
    """The server cannot do it now."""


TRANSIENT: Final = (OSError, WireError, Unready)
"""After these it is tried again, over new connections."""


def check(code: int, what: str, said: str | None = None) -> None:
    """Raise for an error code: `Unready` if it may pass, else `WriteError`."""
    if not code:
        return
    said = MEANING.get(code) or said or _NAMES.get(code, f"error {code}")
    raise (Unready if code in RETRIED else WriteError)(f"{what}: {said}")
