from magnetar.bookie.client.connection.statuses import ERRORS, error_of
from magnetar.bookie.requests.errors import status_of
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.errors import EntryNotFound, Fenced, LedgerNotFound, Unauthorized


def test_every_status_but_ok_has_an_error() -> None:
    assert set(ERRORS) == set(Status) - {Status.OK}


def test_promises_and_ends_are_what_our_own_bookie_means() -> None:
    for kind in (EntryNotFound, LedgerNotFound, Fenced, Unauthorized):
        error = error_of(status_of(kind("x")), "b:1", "entry 1:2")
        assert type(error) is kind
        assert "bookie b:1 says of entry 1:2" in str(error)
