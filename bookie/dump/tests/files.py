"""Journals and entry logs as bookies write them."""

from magnetar.bookie.format import entries, entry_log, journal
from magnetar.core.kernel.checksum import crc32c

KEY = bytes(range(20))


def run(ledger, first, count):
    payloads = [b"entry %d " % i * 5 for i in range(first, first + count)]
    return entries.seal(ledger, first, first - 1, 0, payloads).blob


def group(data, records, sealed=True):
    """The journal with one more group."""
    seal = journal.seal(len(records), crc32c(records)) if sealed else b""
    data += records
    return data + journal.padding(len(data), seal)


def a_journal():
    """Three groups: a key and entries; a fence and a LAC; entries without a seal."""
    data = group(journal.HEADER, journal.key_note(7, KEY) + run(7, 0, 3))
    data = group(data, journal.fence_note(7) + journal.lac_note(7, b"packet"))
    data = group(data, run(8, 0, 2) + run(7, 3, 1), sealed=False)
    return data + bytes(2048)


def an_entry_log():
    """Entries of two ledgers, and the map of both."""
    records = run(7, 0, 3) + run(8, 5, 2)
    sizes = {7: len(run(7, 0, 3)), 8: len(run(8, 5, 2))}
    end = entry_log.HEADER_BYTES + len(records)
    return entry_log.header(end, 2) + records + entry_log.ledgers_map(sizes)


def changed(data, at, value):
    return data[:at] + bytes([value]) + data[at + 1 :]
