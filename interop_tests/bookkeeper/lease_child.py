"""A process that holds a lease, and says so when it has lost it: CONNECTION PATH SECONDS."""

import sys

import trio

from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper


async def main(connection: str, path: str, seconds: str) -> None:
    async with open_zookeeper(parse(connection), float(seconds)) as store:
        await store.lease(path, b"child", lambda: print("lost", flush=True))
        print("held", flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
