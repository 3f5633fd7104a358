"""Connections on which a bookie knows who asks: each is authenticated before anything else is said.

The exchange is in version 3 of the protocol, whatever is spoken behind it: a bookie takes frames
for version 3 until one is not (`BookieProtoEncoding.java` of BookKeeper 4.18), and version 3 has an
answer for what is refused, where version 2 only has the end of the connection.

Invariant: who gets a connection may ask for everything that its credentials allow.
"""

from __future__ import annotations

import logging

from magnetar.bookie.client.connection.question import answer_of
from magnetar.bookie.rpc.credentials import AUTH_DISABLED, Credentials
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.errors import StorageFailed, Unauthenticated
from magnetar.core.ports.network import Network, NetworkConnection

log = logging.getLogger(__name__)

STEPS_MAX = 10
"""Of one exchange; DIGEST-MD5 has three."""


class AuthenticatedNetwork:
    """A `Network` whose connections are to bookies."""

    def __init__(self, network: Network, credentials: Credentials) -> None:
        self._network = network
        self._credentials = credentials

    async def connect(self, host: str, port: int) -> NetworkConnection:
        connection = await self._network.connect(host, port)
        try:
            await self._authenticate(connection, f"{host}:{port}")
        except BaseException:
            connection.close()
            raise
        return connection

    async def _authenticate(self, connection: NetworkConnection, where: str) -> None:
        plugin, exchange = self._credentials.plugin, self._credentials.begin()
        said = b""
        for _ in range(STEPS_MAX):
            try:
                answer = exchange.respond(said)
            except Unauthenticated as error:
                raise StorageFailed(f"the bookie at {where} is not trusted: {error}") from error
            if answer is None:
                return
            found = await answer_of(connection, where, Authenticate(plugin, answer))
            if not isinstance(found, Authenticate):
                text = (
                    f"the bookie at {where} refuses our credentials, shown by the plugin {plugin}"
                )
                log.warning("%s", text)
                raise StorageFailed(text)
            if found.plugin == AUTH_DISABLED:
                return
            if found.plugin != plugin:
                raise StorageFailed(f"the bookie at {where} speaks of {found.plugin}, not {plugin}")
            said = found.payload
        raise StorageFailed(f"the bookie at {where} never ends the exchange of {plugin}")
