"""One question to one bookie, over a connection of its own: for those who ask rarely.

Version 3 of the protocol, which has all requests.
"""

from __future__ import annotations

import trio

from magnetar.bookie.rpc.client_wire import AddsAnswered, ClientWire, pack_request
from magnetar.bookie.rpc.messages import BookieMessage
from magnetar.core.kernel.errors import StorageFailed, WireError
from magnetar.core.ports.network import Network, NetworkConnection

VERSION = 3
RECEIVE_BYTES = 64 * 1024


async def ask_once(network: Network, host: str, port: int, request: BookieMessage) -> BookieMessage:
    """What it answers; `OSError` or a `BrokerError` if it does not. The caller sets the time."""
    connection = await network.connect(host, port)
    try:
        return await answer_of(connection, f"{host}:{port}", request)
    finally:
        connection.close()


async def answer_of(
    connection: NetworkConnection, where: str, request: BookieMessage
) -> BookieMessage:
    """The answer to the only request that is under way on a connection."""
    wire = ClientWire(VERSION)
    answers: list[BookieMessage] = []
    try:
        with trio.CancelScope() as answered:

            def take(data: bytes) -> None:
                for event in wire.feed(data):
                    if not isinstance(event, AddsAnswered):
                        answers.append(event.response)
                        answered.cancel()

            frame = memoryview(pack_request(VERSION, 1, request))
            while frame := frame[connection.send_at_once(frame) :]:
                await connection.wait_sendable()
            await connection.deliver(RECEIVE_BYTES, take)
    except WireError as error:
        raise StorageFailed(f"the bookie at {where} answers nonsense: {error}") from error
    if not answers:
        raise StorageFailed(f"the bookie at {where} has closed the connection")
    return answers[0]
