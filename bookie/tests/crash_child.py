"""Run as a process by the crash tests: appends for ever and prints what was acknowledged."""

import os
import sys
from pathlib import Path

import trio

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata


def payload(ledger_id: int, entry_id: int) -> bytes:
    return f"{ledger_id}:{entry_id}:".encode() * (1 + entry_id % 7)


async def main(directory: Path, settings: BookieSettings) -> None:
    metadata = DictMetadata(directory / "metadata.json")
    out = sys.stdout.fileno()
    async with open_embedded(directory / "bookie", metadata, settings, on_fatal=sys.exit) as store:
        writers = [await store.create({}) for _ in range(3)]
        while True:
            while store.congested:  # as the link would
                await trio.lowlevel.checkpoint()
            synced = trio.Event()
            waiting = len(writers)

            def done(error, synced=synced):
                nonlocal waiting
                assert error is None
                waiting -= 1
                if not waiting:
                    synced.set()

            for writer in writers:
                first = writer.last_confirmed + 1
                writer.append([payload(writer.ledger_id, first + i) for i in range(20)], done)
            await synced.wait()
            for writer in writers:
                os.write(out, f"{writer.ledger_id} {writer.last_confirmed}\n".encode())


if __name__ == "__main__":
    small = BookieSettings(
        write_cache_bytes=64 * 1024,
        journal_size_max_bytes=256 * 1024,
        checkpoint_interval_seconds=0.05,
        sync=sys.argv[2] == "sync",
    )
    trio.run(main, Path(sys.argv[1]), small)
