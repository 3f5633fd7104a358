"""Ledgers in use: what a row keeps of one that leaves."""

from magnetar.bookie.server.ledgers import states as states_module
from magnetar.bookie.server.ledgers.states import LedgerState
from magnetar.bookie.tests.memory_machine import open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.ports.tests.contract_ledger_store import Outcome
from magnetar.core.testing.memory_disk import MemoryDisk

KEY = b"k" * 20


async def test_a_row_has_all_that_a_ledger_must_keep(autojump_clock):
    disk, metadata = MemoryDisk(), DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        states = store._bookie.states
        state = states.touch(1, KEY)
        state.limbo = state.other_digest = True
        state.explicit_lac = b"p" * 20
        outcome = Outcome()
        states.write_explicit_lac(1, state, outcome)
        await outcome.wait()
        outcome = Outcome()
        states.write_fence(1, state, outcome)
        await outcome.wait()
        states.release(1)
        again = states.touch(1, b"")
        assert again.row() == state.row()
        assert not again.fence_synced
    async with open_in_memory(disk, metadata) as store:
        again = store._bookie.states.touch(1, b"")
        assert again.row() == state.row()


async def test_the_journal_alone_has_the_explicit_lac(autojump_clock):
    disk, metadata = MemoryDisk(), DictMetadata()
    async with open_in_memory(disk, metadata) as store:
        states = store._bookie.states
        state = states.touch(1, KEY)
        state.explicit_lac = b"p" * 20
        outcome = Outcome()
        states.write_explicit_lac(1, state, outcome)
        await outcome.wait()
        left, kept = MemoryDisk(image=disk.image.copy()), DictMetadata()
        kept.values = metadata.without_leases()
    async with open_in_memory(left, kept) as store:
        again = store._bookie.states.touch(1, b"")
        assert (again.explicit_lac, again.master_key) == (b"p" * 20, KEY)


async def test_many_changed_rows_are_written_out_soon(monkeypatch, autojump_clock):
    monkeypatch.setattr(states_module, "ROWS_MAX", 10)
    async with open_in_memory(MemoryDisk(), DictMetadata()) as store:
        states, checkpointer = store._bookie.states, store._bookie._checkpointer
        for ledger_id in range(10):
            assert not checkpointer._requested.is_set()
            outcome = Outcome()
            states.write_fence(ledger_id, states.touch(ledger_id, KEY), outcome)
        assert checkpointer._requested.is_set()
        await outcome.wait()


def test_a_new_ledger():
    row = LedgerState(KEY, fenced=False).row()
    assert (row.master_key, row.fenced, row.explicit_lac, row.limbo) == (KEY, False, b"", False)
