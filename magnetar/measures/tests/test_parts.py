from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from magnetar.bookie.server.statistics import BookieStatistics, Histogram
from magnetar.core.link.statistics import LinkStatistics
from magnetar.measures.parts import families, of_bookie, of_cluster
from magnetar.wire.http.metrics.exposition import text

LINK = LinkStatistics(3, 5, 1, 1000, 7, 0.004, 0.003)


def store() -> BookieStatistics:
    """All figures different, so that none stands for another."""
    syncs, checkpoints = Histogram.of_latency(), Histogram.of_latency()
    syncs.add(0.0001)
    syncs.add(20.0)
    values = {name: 100 + i for i, name in enumerate(BookieStatistics.__struct_fields__)} | {
        "journal_sync_seconds": syncs,
        "checkpoint_seconds": checkpoints,
    }
    return BookieStatistics(**values)


def test_every_figure_is_there_once_and_prometheus_reads_it() -> None:
    found = {
        family.name: family
        for family in text_string_to_metric_families(text([*families(LINK), *of_bookie(store())]))
    }
    assert found["pulsar_active_connections"].samples[0].value == 3
    assert found["pulsar_connection_closed_total_count"].samples[0].value == 2
    for name, field in (
        ("magnetar_reads_write_cache", "reads_from_write_cache"),
        ("magnetar_reads_read_cache", "reads_from_read_cache"),
        ("magnetar_reads_disk", "reads_from_disk"),
        ("magnetar_ledgers_deleted", "ledgers_deleted"),
        ("magnetar_entry_logs_deleted", "entry_logs_unlinked"),
        ("magnetar_compacted_bytes", "bytes_compacted"),
        ("magnetar_storage_congested", "congested"),
    ):
        assert found[name].samples[0].value == getattr(store(), field), name
    assert found["magnetar_loop_pause_seconds_max"].samples[0].value == 0.004
    assert found["magnetar_loop_pause_own_seconds_max"].samples[0].value == 0.003
    assert found["magnetar_write_cache_bytes"].samples[0].value == store().write_cache_bytes
    sync = {
        (sample.name, sample.labels.get("le")): sample.value
        for sample in found["bookie_journal_JOURNAL_SYNC_seconds"].samples
    }
    assert sync["bookie_journal_JOURNAL_SYNC_seconds_bucket", "0.0001"] == 1
    assert sync["bookie_journal_JOURNAL_SYNC_seconds_bucket", "+Inf"] == 2
    assert sync["bookie_journal_JOURNAL_SYNC_seconds_count", None] == 2


def test_a_store_that_takes_no_writes_says_so() -> None:
    full = structs.replace(store(), writable=False)
    assert "bookie_SERVER_STATUS 0" in text(of_bookie(full))


def test_storage_on_a_cluster_says_whether_it_takes_writes() -> None:
    said = text(of_cluster(writable=True, congested=False))
    assert "bookie_SERVER_STATUS 1" in said
    assert "magnetar_storage_congested 0" in said
