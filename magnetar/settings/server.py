"""Settings of the process itself: its doors, their locks, its limits and its log."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

PORT_MAX = 65_535
PORTS: Final = ("pulsar_port", "kafka_port", "http_port")
TLS_PORTS: Final = ("pulsar_tls_port", "kafka_tls_port", "https_port")
"""These are opened where there is a certificate."""

ClientAuth = Literal["", "none", "requested", "required"]
"""Kafka's words for it; Pulsar's `tlsRequireTrustedClientCertOnConnect` knows the last two."""
Level = Literal["debug", "info", "warning", "error"]


class Listen(Struct, frozen=True):
    """Where the server can be reached."""

    host: Annotated[
        str, Meta(description="Address of every listener; 0.0.0.0 or :: for all interfaces.")
    ] = "127.0.0.1"
    pulsar_port: Annotated[
        int, Meta(description="Pulsar's binary protocol; 0 for any free port.", ge=0, le=PORT_MAX)
    ] = 6650
    kafka_port: Annotated[
        int, Meta(description="Kafka's protocol; 0 as above.", ge=0, le=PORT_MAX)
    ] = 9092
    http_port: Annotated[
        int, Meta(description="Admin REST, lookup and metrics; 0 as above.", ge=0, le=PORT_MAX)
    ] = 8080
    pulsar_tls_port: Annotated[
        int, Meta(description="Pulsar over TLS, opened with a certificate.", ge=0, le=PORT_MAX)
    ] = 6651
    kafka_tls_port: Annotated[
        int, Meta(description="Kafka over TLS, opened with a certificate.", ge=0, le=PORT_MAX)
    ] = 9093
    https_port: Annotated[
        int, Meta(description="HTTP over TLS, opened with a certificate.", ge=0, le=PORT_MAX)
    ] = 8443
    advertised_host: Annotated[
        str,
        Meta(description="Name that clients are told; empty: the address they came by."),
    ] = ""
    http_allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Names by which HTTP may be asked for, besides addresses, localhost, this "
            "machine's own name and advertised_host: no web page can then reach it under a name of "
            "its own. `.example.org` for all below that; `*` for any."
        ),
    ] = ()
    ready_file: Annotated[
        str, Meta(description="File that gets the listeners' addresses as JSON; empty: none.")
    ] = ""


class Tls(Struct, frozen=True):
    """Certificates, as PEM files. Without one nothing listens with TLS."""

    certificate: Annotated[
        str, Meta(description="The server's certificate, with its chain; empty: no TLS.")
    ] = ""
    key: Annotated[
        str, Meta(description="The certificate's private key; empty: in the same file.")
    ] = ""
    client_ca: Annotated[
        str,
        Meta(description="Certificates that sign those of clients; empty: clients show none."),
    ] = ""
    pulsar_client_auth: Annotated[
        ClientAuth,
        Meta(
            description="Whether Pulsar's clients show a certificate that client_ca has signed: "
            "none is asked for, or one is checked where it is shown, or who shows none is refused; "
            "empty: required where there is a client_ca, else none."
        ),
    ] = ""
    kafka_client_auth: Annotated[
        ClientAuth, Meta(description="The same of Kafka's clients (`ssl.client.auth`).")
    ] = ""
    https_client_auth: Annotated[
        ClientAuth, Meta(description="The same of whoever asks over HTTPS.")
    ] = ""


class Limits(Struct, frozen=True):
    """What one process takes upon itself, and what it does beyond."""

    connections: Annotated[
        int, Meta(description="Connections in all; more are refused.", ge=1, le=1_000_000)
    ] = 10_000
    connections_per_address: Annotated[
        int, Meta(description="Connections from one address; 0 for no limit.", ge=0)
    ] = 0
    keep_alive_seconds: Annotated[
        float,
        Meta(description="A peer silent for so long is pinged, for twice as long closed.", gt=0),
    ] = 30.0
    outbox_high_water_bytes: Annotated[
        int, Meta(description="Waiting for one peer: beyond it that peer is not read.", ge=1024)
    ] = 1024 * 1024
    unread_seconds: Annotated[
        float, Meta(description="A peer that takes nothing of what waits for it is closed.", gt=0)
    ] = 120.0
    memory_budget_mb: Annotated[
        int,
        Meta(
            description="What all clients together may have in memory: received and not stored yet,"
            " to be sent, being asked. Beyond it they wait for each other.",
            ge=16,
        ),
    ] = 256
    pending_messages_per_connection: Annotated[
        int, Meta(description="Publishes waiting for storage: beyond it reading pauses.", ge=1)
    ] = 10_000
    pending_bytes_per_connection: Annotated[
        int, Meta(description="The same in bytes.", ge=1024)
    ] = 16 * 1024 * 1024
    max_concurrent_lookup_request: Annotated[
        int, Meta(description="Lookups under way; more are refused (TooManyRequests).", ge=1)
    ] = 50_000
    http_connections: Annotated[
        int, Meta(description="HTTP connections; more get 503, or over TLS no answer.", ge=1)
    ] = 1_000
    http_body_bytes: Annotated[
        int, Meta(description="Body of one HTTP request; larger ones get 413.", ge=1024)
    ] = 16 * 1024 * 1024
    drain_seconds: Annotated[
        float, Meta(description="After SIGTERM: time to finish what is under way.", gt=0, le=3600)
    ] = 8.0


class Log(Struct, frozen=True):
    """One line per event of note on standard error; nothing per message."""

    level: Annotated[Level, Meta(description="Least level that is written.")] = "info"
    format: Annotated[
        Literal["text", "json"], Meta(description="Lines for people, or one JSON object each.")
    ] = "text"
    levels: Annotated[
        dict[str, Level],
        Meta(description='Levels of single parts, such as {"wire.pulsar" = "debug"}.'),
    ] = {}
