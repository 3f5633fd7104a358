"""A process that writes a ledger until it is killed: URI ENSEMBLE WRITE ACK.

It prints the ledger's id, and then the number of entries that were acknowledged.
"""

import sys

import trio

from interop_tests.bookkeeper.quorum import opened


async def main(uri: str, *sizes: str) -> None:
    async with opened(uri, *map(int, sizes)) as store:
        writer = await store.create({})
        print(writer.ledger_id, flush=True)
        room = trio.Semaphore(100)
        stored = 0

        def done(error: Exception | None) -> None:
            nonlocal stored
            assert error is None, error
            stored += 1
            print(stored, flush=True)
            room.release()

        number = 0
        while True:
            await room.acquire()
            writer.append([b"entry %d" % number], done)
            number += 1


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
