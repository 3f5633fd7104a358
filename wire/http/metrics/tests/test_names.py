"""The names that `/metrics` may use."""

from magnetar.wire.http.metrics.names import (
    OF_COORDINATORS,
    OF_SUBSCRIPTIONS,
    OF_TOPICS,
    SUMMED,
)

ALL = (*OF_TOPICS, *OF_SUBSCRIPTIONS, *OF_COORDINATORS)
MISNAMED = {"pulsar_txn_tb_active_total", "pulsar_txn_tb_aborted_total"}
"""Apache's names for what may also become less."""


def test_a_name_is_there_once() -> None:
    names = [name for name, _, _ in ALL]
    assert len(set(names)) == len(names)
    assert not set(SUMMED) & set(names)


def test_sums_are_of_what_topics_tell() -> None:
    assert set(SUMMED.values()) <= {name for name, _, _ in OF_TOPICS}


def test_counters_are_named_so() -> None:
    for name, kind, _ in ALL:
        assert (kind == "counter") == (name.endswith("_total") and name not in MISNAMED)
