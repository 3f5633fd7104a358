"""The table of errors is total."""

from collections.abc import Iterator

from core import errors
from wire.http.errors import STATUS, status_of


def leaves(kind: type[errors.BrokerError]) -> Iterator[type[errors.BrokerError]]:
    below = kind.__subclasses__()
    for each in below:
        yield from leaves(each)
    if not below:
        yield kind


def test_every_leaf_has_a_status() -> None:
    assert set(leaves(errors.BrokerError)) - set(STATUS) == set()


def test_the_table_knows_only_what_there_is() -> None:
    assert all(issubclass(kind, errors.BrokerError) for kind in STATUS)


def test_the_nearest_kind_decides() -> None:
    assert status_of(errors.InvalidName("?")) == 412
    assert status_of(errors.Invalid("?")) == 400
    assert status_of(errors.BrokerError("?")) == 500
