"""Every error of the broker has a status, and no uncertain one is a promise."""

from magnetar.bookie.requests.errors import status_of
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel import errors
from magnetar.core.testing.errors import leaves

PROMISES = {
    Status.NO_ENTRY: {errors.EntryNotFound},
    Status.NO_LEDGER: {errors.LedgerNotFound},
    Status.FENCED: {errors.Fenced},
    Status.UNAUTHORIZED: {errors.Unauthorized},
}


def test_the_table_is_total_and_promises_are_rare():
    for leaf in leaves():
        status = status_of(leaf("why"))
        assert leaf in PROMISES.get(status, {leaf})
    assert status_of(errors.Corrupted("why")) is Status.IO_ERROR
