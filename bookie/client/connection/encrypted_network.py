"""Connections to bookies that are encrypted: TLS begins behind a request to start it, which is in
version 3 of the protocol, whatever is spoken later (`PerChannelBookieClient.initiateTLS` of
BookKeeper 4.18).

    send_at_once    encrypts as long as the system takes what is encrypted; the rest waits here, is
                    less than two records, and is sent by a task of `deliver`, which alone waits for
                    the socket then
    deliver         decrypts what comes; ends when the bookie says that it ends, or just does

OpenSSL is asked in memory, without a socket: so nothing blocks, and in a server the loop receives.

Invariant: what `send_at_once` has taken is sent in order, and once, or the connection fails.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

import trio

from magnetar.bookie.client.connection.question import answer_of
from magnetar.bookie.rpc.messages import StartTls, Status, TlsStarted
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.network import Network, NetworkConnection

RECORD_BYTES: Final = 16 * 1024
RECEIVE_BYTES: Final = 64 * 1024


class EncryptedNetwork:
    """A `Network` whose connections are to bookies. `context` is asked for with each connection:
    files may have changed.
    """

    def __init__(self, network: Network, context: Callable[[], ssl.SSLContext]) -> None:
        self._network = network
        self._context = context

    async def connect(self, host: str, port: int) -> NetworkConnection:
        where = f"{host}:{port}"
        connection = await self._network.connect(host, port)
        try:
            answer = await answer_of(connection, where, StartTls())
            if getattr(answer, "status", None) is not Status.OK or not isinstance(
                answer, TlsStarted
            ):
                raise StorageFailed(f"the bookie at {where} does not speak TLS")
            encrypted = _EncryptedConnection(connection, self._context(), host)
            try:
                await encrypted.shake_hands()
            except ssl.SSLError as error:
                raise StorageFailed(f"no TLS with the bookie at {where}: {_text(error)}") from error
            return encrypted
        except BaseException:
            connection.close()
            raise


def _text(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", "") or error.reason or str(error)


class _EncryptedConnection:
    """See the module's docstring."""

    def __init__(self, inner: NetworkConnection, context: ssl.SSLContext, host: str) -> None:
        self._inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._unsent = memoryview(b"")
        self._delivering = False
        self._waits = trio.Event()
        """Set while something is unsent."""
        self._sent = trio.Event()

    async def shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send_all()
                await self._receive_some()
                continue
            except ssl.SSLError:
                self._flush()  # the alert that says why
                raise
            await self._send_all()
            return

    async def _send_all(self) -> None:
        while not self._flush():
            await self._inner.wait_sendable()

    async def _receive_some(self) -> None:
        with trio.CancelScope() as received:

            def take(data: bytes) -> None:
                self._incoming.write(data)
                received.cancel()

            await self._inner.deliver(RECEIVE_BYTES, take)
        if not received.cancel_called:
            raise StorageFailed("the bookie has ended the connection instead of beginning TLS")

    def _flush(self) -> bool:
        """Send what is encrypted, as far as the system takes it; whether that is all."""
        if self._outgoing.pending:
            self._unsent = memoryview(bytes(self._unsent) + self._outgoing.read())
        while self._unsent:
            sent = self._inner.send_at_once(self._unsent)
            if not sent:
                self._waits.set()
                return False
            self._unsent = self._unsent[sent:]
        return True

    def send_at_once(self, data: bytes | memoryview) -> int:
        whole, taken = memoryview(data), 0
        while taken < len(whole) and self._flush():
            taken += self._tls.write(whole[taken : taken + RECORD_BYTES])
        self._flush()
        return taken

    async def wait_sendable(self) -> None:
        if not self._delivering:
            await self._send_all()
        elif self._unsent:
            self._sent = trio.Event()
            await self._sent.wait()
        else:
            await trio.lowlevel.checkpoint()

    async def deliver(self, size_max: int, take: Callable[[bytes], None]) -> None:
        def take_encrypted(data: bytes) -> None:
            self._incoming.write(data)
            self._decrypt(size_max, take)

        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            self._delivering = True
            nursery.start_soon(self._send_rest)
            try:
                self._decrypt(size_max, take)  # came with the end of the handshake
                await self._inner.deliver(size_max, take_encrypted)
            except _Ended:
                pass
            except Exception as error:  # noqa: BLE001  # raised by itself below, and not in a group
                failure = error
            finally:
                self._delivering = False
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _decrypt(self, size_max: int, take: Callable[[bytes], None]) -> None:
        while True:
            try:
                plain = self._tls.read(size_max)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                raise _Ended from None
            if not plain:
                raise _Ended
            take(plain)
        self._flush()

    async def _send_rest(self) -> None:
        while True:
            await self._waits.wait()
            self._waits = trio.Event()
            try:
                await self._send_all()
            except OSError:
                self._inner.close()  # by which `deliver` ends
                return
            finally:
                self._sent.set()

    def close(self) -> None:
        self._inner.close()


class _Ended(Exception):
    """The bookie has said that it ends the connection."""
