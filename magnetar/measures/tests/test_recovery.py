"""Apache's names; `interop_tests/bookkeeper/test_recovery.py` has the values of a real one."""

from types import SimpleNamespace

from magnetar.bookie.replication.auto_recovery import AutoRecovery
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.measures.recovery import and_of_recovery, families


def test_each_name_once_and_what_was_counted() -> None:
    counters = ReplicationCounters(entries_read=3, ledgers_marked=2)
    recovery = AutoRecovery(counters, SimpleNamespace(is_elected=True), None)
    found = families(recovery)
    names = [family.name for family in found]
    assert len(set(names)) == len(names)
    samples = {sample for family in found for sample in family.samples}
    assert "replication_worker_NUM_ENTRIES_READ 3" in samples
    assert "auditor_NUM_UNDER_REPLICATED_LEDGERS_count 2" in samples
    assert "magnetar_recovery_is_auditor 1" in samples
    assert and_of_recovery(lambda: found, None)() == found
    assert len(and_of_recovery(lambda: found, recovery)()) == 2 * len(found)
