"""Where bookies are, as a planner says it."""

import pickle

import pytest

from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.bookie.reading.sources import PlannedLedgers, address_in
from magnetar.core.kernel.errors import Corrupted, LedgerNotFound, NotFound


def test_a_plan_can_be_sent_elsewhere() -> None:
    plan = pickle.loads(pickle.dumps(PlannedLedgers({5: b"metadata"}, {"one": ("h", 3181)})))
    assert plan.metadata(5) == b"metadata"
    assert plan.address("one") == ("h", 3181)
    assert plan.address("127.0.0.1:3182") == ("127.0.0.1", 3182)
    with pytest.raises(LedgerNotFound, match="no ledger 6"):
        plan.metadata(6)
    with pytest.raises(Corrupted, match="two"):
        plan.address("two")


def test_what_a_bookie_publishes_is_its_address() -> None:
    published = ServiceInfo((BookieEndpoint("x", "h", 80, "http"), BookieEndpoint("b", "h", 3181)))
    assert address_in("127.0.0.1:9", published.encode()) == ("h", 3181)
    with pytest.raises(NotFound):
        address_in("127.0.0.1:9", ServiceInfo(published.endpoints[:1]).encode())
