"""One connection to a broker, in Kafka's protocol: requests out, responses in the same order.

It blocks, and every call has a deadline. A query that says who it is does so first, by PLAIN of
SASL, which takes a token as a password, too. Versions are those that this server has had from its
first release on, so none are agreed with it.

Invariant: a connection that has failed is closed, and never used again: where its stream stands is
unknown.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from ssl import SSLContext
from typing import Any, Final, NamedTuple

from magnetar.core.kernel.errors import WireError
from magnetar.core.security.conversation import PLAIN
from magnetar.spark_connector.errors import RefusedError
from magnetar.spark_connector.login import NOBODY, Login
from magnetar.spark_connector.security import check_trust
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec import reader
from magnetar.wire.kafka.codec.declare import Request, Response
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.basics import FindCoordinatorResponse, MetadataResponse
from magnetar.wire.kafka.messages.records import ProduceResponse
from magnetar.wire.kafka.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from magnetar.wire.kafka.messages.transactions import (
    AddPartitionsToTxnResponse,
    DescribeProducersResponse,
    InitProducerIdResponse,
)

CLIENT_ID: Final = b"magnetar-spark"
_HEAD: Final = struct.Struct(">hhih")
_SIZE: Final = struct.Struct(">i")
RESPONSE_BYTES_MAX: Final = 64 << 20


class Used(NamedTuple):
    """The version that is used of a request, and its response."""

    version: int
    response: type[Response]


USED: Final = {
    ApiKey.PRODUCE: Used(9, ProduceResponse),
    ApiKey.METADATA: Used(9, MetadataResponse),
    ApiKey.FIND_COORDINATOR: Used(3, FindCoordinatorResponse),
    ApiKey.INIT_PRODUCER_ID: Used(4, InitProducerIdResponse),
    ApiKey.ADD_PARTITIONS_TO_TXN: Used(3, AddPartitionsToTxnResponse),
    ApiKey.DESCRIBE_PRODUCERS: Used(0, DescribeProducersResponse),
    ApiKey.SASL_HANDSHAKE: Used(1, SaslHandshakeResponse),
    ApiKey.SASL_AUTHENTICATE: Used(2, SaslAuthenticateResponse),
}


class BrokerConnection:
    """See the module's docstring."""

    def __init__(
        self,
        address: tuple[str, int],
        timeout_seconds: float,
        tls: SSLContext | None = None,
        login: Login = NOBODY,
    ) -> None:
        """Connects, or raises `OSError`; `RefusedError` for who is not let in."""
        self._timeout_seconds = timeout_seconds
        self._address = address
        self._socket = socket.create_connection(address, timeout_seconds)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=address[0])
        except OSError as error:
            self._failed(error)
            raise
        self._next_number = 0
        self._waiting: deque[tuple[int, Request]] = deque()
        if login.method:
            self._log_in(login)

    def _log_in(self, login: Login) -> None:
        name, secret = login.credentials()
        said = f"\0{name or 'token'}\0{secret if name else f'token:{secret}'}".encode()
        shaken = self.ask(SaslHandshakeRequest(mechanism=PLAIN))
        if shaken.error_code:
            self.close()
            raise RefusedError(f"{self._where}: it does not take PLAIN of SASL")
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=said))
        if answer.error_code:
            self.close()
            raise RefusedError(f"{self._where}: {answer.error_message}")

    @property
    def _where(self) -> str:
        host, port = self._address
        return f"{host}:{port}"

    @property
    def waiting(self) -> int:
        """How many responses are still to come."""
        return len(self._waiting)

    def send(self, request: Request) -> None:
        """Send without waiting for the response."""
        version = USED[ApiKey(request.KEY)].version
        flexible = version >= request.FLEXIBLE
        number = self._next_number = self._next_number + 1
        head = _HEAD.pack(request.KEY, version, number, len(CLIENT_ID)) + CLIENT_ID
        body = b"".join(encoder(type(request), version, flexible)(request))
        frame = head + (b"\0" if flexible else b"") + body
        try:
            self._socket.settimeout(self._timeout_seconds)
            self._socket.sendall(_SIZE.pack(len(frame)) + frame)
        except OSError as error:
            self._failed(error)
            raise
        self._waiting.append((number, request))

    def receive(self) -> tuple[Request, Any]:
        """The next response, and its request."""
        number, request = self._waiting.popleft()
        try:
            return request, self._response(number, request)
        except (OSError, WireError) as error:
            self._failed(error)
            raise

    def ask(self, request: Request) -> Any:
        """Send, and wait for the response."""
        assert not self._waiting, "other responses would come first"
        self.send(request)
        return self.receive()[1]

    def close(self) -> None:
        self._socket.close()

    def _failed(self, error: Exception) -> None:
        """Close it; what is no failure that may pass is a `RefusedError`."""
        self.close()
        check_trust(error, self._where)

    def _response(self, number: int, request: Request) -> Response:
        until = time.monotonic() + self._timeout_seconds
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size, until))
        if not 4 <= size <= RESPONSE_BYTES_MAX:
            raise WireError(f"a response of {size} bytes")
        data = self._exactly(size, until)
        (found,) = _SIZE.unpack_from(data)
        if found != number:
            raise WireError(f"response {found} came instead of {number}")
        used = USED[ApiKey(request.KEY)]
        flexible = used.version >= request.FLEXIBLE
        at = reader.skip_tags(data, 4) if flexible else 4
        response: Response = decoder(used.response, used.version, flexible)(data, at)[0]
        return response

    def _exactly(self, size: int, until: float) -> bytes:
        pieces = bytearray()
        while len(pieces) < size:
            self._socket.settimeout(max(until - time.monotonic(), 0.001))
            piece = self._socket.recv(size - len(pieces))
            if not piece:
                raise ConnectionResetError("the server has closed the connection")
            pieces += piece
        return bytes(pieces)
