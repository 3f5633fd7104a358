"""Apache's names; `magnetar/tests/test_bookie_http.py` has the values of a real bookie."""

import pytest

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.loop import Link
from magnetar.measures import bookie


@pytest.mark.parametrize(
    ("registered", "read_only", "status"), [(True, False, 1), (True, True, 0), (False, False, -1)]
)
async def test_the_status_and_each_name_once(tmp_path, registered, read_only, status) -> None:
    settings = BookieSettings(scrub_bytes_per_second=0)
    async with open_embedded(tmp_path, DictMetadata(), settings, on_fatal=pytest.fail) as store:
        running = store._parts
        ledgers = ServedLedgers(running.bookie, SystemClock(), 0)
        ledgers.read_only = read_only
        services = BookieServices(ledgers, running, RequestLimits())
        link = Link(SystemClock(), LinkLimits()).statistics()
        found = bookie.families(link, running, services, registered=registered)
    names = [family.name for family in found]
    assert len(set(names)) == len(names)
    samples = {sample for family in found for sample in family.samples}
    assert f"bookie_SERVER_STATUS {status}" in samples
    assert 'bookkeeper_server_ADD_ENTRY_REQUEST_count{success="true"} 0' in samples
    assert "bookie_write_cache_misses 0" in samples
    assert 'bookkeeper_server_READ_ENTRY_FENCE_REQUEST_count{success="false"} 0' in samples
    assert "bookie_ledger_num_dirs 1" in samples
    assert "bookie_ledger_writable_dirs 1" in samples
    assert "bookie_MAJOR_COMPACTION_TOTAL 0" in samples
