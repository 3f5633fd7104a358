"""The table of errors is total."""

from magnetar.core.kernel import errors
from magnetar.core.testing.errors import leaves
from magnetar.wire.http.errors import STATUS, status_of


def test_every_leaf_has_a_status() -> None:
    assert leaves() - set(STATUS) == set()


def test_the_table_knows_only_what_there_is() -> None:
    assert all(issubclass(kind, errors.BrokerError) for kind in STATUS)


def test_the_nearest_kind_decides() -> None:
    assert status_of(errors.InvalidName("?")) == 412
    assert status_of(errors.Invalid("?")) == 400
    assert status_of(errors.BrokerError("?")) == 500
