"""Reading what compaction left: entries that follow each other, with few calls of storage."""

from __future__ import annotations

import pytest

from magnetar.core.ledger.log.chain import Segment
from magnetar.core.ledger.log.remaining_entries import RemainingEntries
from magnetar.core.ledger.read.readers import Readers
from magnetar.core.ledger.read.sparse import Sparse
from magnetar.core.testing.bench import NAME, bench, settled

IDS = [0, 1, 2, 7, 9, 10]


async def test_runs_of_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench() as made:
        writer = await made.ledgers.create({})
        writer.append([b"other", *(b"entry %d" % one for one in IDS)], lambda _: None)
        await settled()
        calls = []
        read = writer.read

        async def counted(first: int, last: int, bytes_max: int) -> list[bytes]:
            calls.append((first, last))
            return await read(first, last, bytes_max)

        monkeypatch.setattr(writer, "read", counted)
        segment = Segment(5, 0, 11, remaining=RemainingEntries(writer.ledger_id, 1, IDS))
        sparse = Sparse(Readers(made.ledgers, NAME))

        async def found(entry_id: int, entries_max: int = 9, bytes_max: int = 99) -> list[bytes]:
            part = await sparse.read(segment, entry_id, entries_max, bytes_max)
            assert (part.ledger_id, part.first_entry) == (5, entry_id)
            return part.payloads

        assert await found(0) == [b"entry 0", b"entry 1", b"entry 2"]
        assert await found(1, 1) == [b"entry 1"]
        assert await found(0, bytes_max=15) == [b"entry 0", b"entry 1"]
        assert await found(0, bytes_max=1) == [b"entry 0"]
        assert await found(7) == [b"entry 7"]
        assert await found(9) == [b"entry 9", b"entry 10"]
        assert calls == [(1, 6)], "all were read with the first"
        assert await found(9) == [b"entry 9", b"entry 10"]
        assert calls == [(1, 6), (5, 6)], "nothing is kept behind the last"
        (nothing,) = await found(8)
        assert nothing not in writer.entries
