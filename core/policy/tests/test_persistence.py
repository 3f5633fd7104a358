"""What tools send of bookies and rates, and what it decides."""

from typing import Any

import pytest

from magnetar.core.policy.persistence import Persistence, persistence_of, show_persistence
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective


def sent(*sizes: int, **more: Any) -> dict[str, Any]:
    names = ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum")
    return {**dict(zip(names, sizes, strict=True)), **more}


def test_what_is_read() -> None:
    rate = {"managedLedgerMaxMarkDeleteRate": 0.5}
    assert persistence_of(sent(3, 2, 1, **rate)) == Persistence(3, 2, 1, 0.5)
    assert persistence_of({}) == Persistence(2, 2, 2, -1.0)


@pytest.mark.parametrize("value", [sent(1, 2, 1), sent(2, 1, 2), sent(1, 1, 0), "x", [1], None])
def test_what_cannot_be_decides_nothing(value: Any) -> None:
    assert persistence_of(value) is None


def test_the_nearest_level_decides_all_of_it() -> None:
    broker = Effective(persistence=Persistence(3, 3, 2, 0.0))
    namespace = NamespacePolicies(persistence=sent(2, 2, 1))
    topic = TopicPolicies(persistence=sent(1, 1, 1))
    none, nonsense = TopicPolicies(), TopicPolicies(persistence=sent(1, 1, 9))
    found = [effective(broker, namespace, each).persistence for each in (topic, none, nonsense)]
    assert found == [Persistence(1, 1, 1, -1.0), Persistence(2, 2, 1), Persistence(2, 2, 1)]
    assert effective(broker, NamespacePolicies(), none) is broker


def test_it_is_shown_as_it_is_sent() -> None:
    rate = {"managedLedgerMaxMarkDeleteRate": 0.0}
    assert show_persistence(None) == sent(1, 1, 1, **rate)
    assert show_persistence(Persistence(3, 2, 2, 0.0)) == sent(3, 2, 2, **rate)
