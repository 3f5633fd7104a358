"""Settings of the process itself: its listeners, TLS, limits and log."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

PORT_MAX = 65_535
PORTS: Final = ("pulsar_port", "kafka_port", "mqtt_port", "mqtt_ws_port", "http_port")
OPTIONAL_PORTS: Final = ("bookie_port",)
"""Closed unless they are asked for."""
TLS_PORTS: Final = (
    "pulsar_tls_port", "kafka_tls_port", "mqtt_tls_port", "mqtt_wss_port", "https_port",
)  # fmt: skip
"""These are opened if there is a certificate."""

ClientAuth = Literal["", "none", "requested", "required"]
"""Kafka's values; Pulsar's `tlsRequireTrustedClientCertOnConnect` has only the last two."""
Level = Literal["debug", "info", "warning", "error"]


class Listen(Struct, frozen=True):
    """Where the server can be reached."""

    host: Annotated[
        str, Meta(description="Address of every listener; 0.0.0.0 or :: for all interfaces.")
    ] = "127.0.0.1"
    pulsar_port: Annotated[
        int,
        Meta(
            description="Pulsar's binary protocol; 0 for any free port, -1: closed.",
            ge=-1,
            le=PORT_MAX,
        ),
    ] = 6650
    kafka_port: Annotated[
        int, Meta(description="Kafka's protocol; 0 and -1 as above.", ge=-1, le=PORT_MAX)
    ] = 9092
    mqtt_port: Annotated[int, Meta(description="MQTT; 0 and -1 as above.", ge=-1, le=PORT_MAX)] = (
        1883
    )
    mqtt_ws_port: Annotated[
        int,
        Meta(
            description="MQTT over WebSocket, path `/mqtt`; 0 and -1 as above.",
            ge=-1,
            le=PORT_MAX,
        ),
    ] = 8083
    http_port: Annotated[
        int,
        Meta(description="Admin REST, lookup and metrics; 0 and -1 as above.", ge=-1, le=PORT_MAX),
    ] = 8080
    bookie_port: Annotated[
        int,
        Meta(
            description="Reads of ledgers in BookKeeper's protocol, for Spark; -1: closed, 0 as "
            "above.",
            ge=-1,
            le=PORT_MAX,
        ),
    ] = -1
    pulsar_tls_port: Annotated[
        int, Meta(description="Pulsar over TLS, opened with a certificate.", ge=0, le=PORT_MAX)
    ] = 6651
    kafka_tls_port: Annotated[
        int, Meta(description="Kafka over TLS, opened with a certificate.", ge=0, le=PORT_MAX)
    ] = 9093
    mqtt_tls_port: Annotated[
        int, Meta(description="MQTT over TLS, opened with a certificate.", ge=0, le=PORT_MAX)
    ] = 8883
    mqtt_wss_port: Annotated[
        int,
        Meta(
            description="MQTT over WebSocket over TLS, opened with a certificate.",
            ge=0,
            le=PORT_MAX,
        ),
    ] = 8084
    https_port: Annotated[
        int, Meta(description="HTTP over TLS, opened with a certificate.", ge=0, le=PORT_MAX)
    ] = 8443
    advertised_host: Annotated[
        str,
        Meta(description="Host name given to clients; empty: the address they connected to."),
    ] = ""
    http_websocket_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web pages that may use Pulsar's WebSocket API, such as "
            '`["https://app.example.org"]`, besides those of this server\'s own host; `*` for any.'
        ),
    ] = ()
    http_allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Host names that HTTP serves besides addresses, localhost, this machine's "
            "own name and advertised_host; refusing others stops web pages that point their own "
            "name here. `.example.org` allows all names below it; `*` any name."
        ),
    ] = ()
    ready_file: Annotated[
        str, Meta(description="File to write the listeners' addresses to, as JSON; empty: none.")
    ] = ""


class Tls(Struct, frozen=True):
    """Certificates, as PEM files. Without a server certificate there is no TLS listener."""

    certificate: Annotated[
        str, Meta(description="The server's certificate, with its chain; empty: no TLS.")
    ] = ""
    key: Annotated[
        str, Meta(description="The certificate's private key; empty: in the same file.")
    ] = ""
    client_ca: Annotated[
        str,
        Meta(
            description="CA certificates that verify client certificates; empty: clients need none."
        ),
    ] = ""
    pulsar_client_auth: Annotated[
        ClientAuth,
        Meta(
            description="Whether Pulsar clients present a certificate signed by client_ca: not "
            "requested, verified if presented, or required; empty: required if there is a "
            "client_ca, otherwise none."
        ),
    ] = ""
    kafka_client_auth: Annotated[
        ClientAuth, Meta(description="The same for Kafka clients (`ssl.client.auth`).")
    ] = ""
    mqtt_client_auth: Annotated[ClientAuth, Meta(description="The same for MQTT clients.")] = ""
    https_client_auth: Annotated[ClientAuth, Meta(description="The same for HTTPS clients.")] = ""


class Limits(Struct, frozen=True):
    """Limits of the process, and what happens beyond them."""

    connections: Annotated[
        int,
        Meta(
            description="Maximum number of connections in total; more are refused.",
            ge=1,
            le=1_000_000,
        ),
    ] = 10_000
    connections_per_address: Annotated[
        int,
        Meta(description="Maximum number of connections from one address; 0 for no limit.", ge=0),
    ] = 0
    keep_alive_seconds: Annotated[
        float,
        Meta(
            description="A peer silent for this long is pinged; after twice that it is closed.",
            gt=0,
        ),
    ] = 30.0
    outbox_high_water_bytes: Annotated[
        int,
        Meta(
            description="Unsent bytes for one peer; beyond this, the server stops reading from it.",
            ge=1024,
        ),
    ] = 1024 * 1024
    unread_seconds: Annotated[
        float,
        Meta(
            description="A peer that has read nothing of its pending output for this long is "
            "closed.",
            gt=0,
        ),
    ] = 120.0
    memory_budget_mb: Annotated[
        int,
        Meta(
            description="Memory for all clients together: data not stored yet, output not sent "
            "yet, requests in progress. When it is used up, clients wait for each other.",
            ge=16,
        ),
    ] = 256
    pending_messages_per_connection: Annotated[
        int,
        Meta(
            description="Publishes of one connection waiting for storage; beyond this, "
            "reading pauses.",
            ge=1,
        ),
    ] = 10_000
    pending_bytes_per_connection: Annotated[
        int, Meta(description="The same in bytes.", ge=1024)
    ] = 16 * 1024 * 1024
    max_concurrent_lookup_request: Annotated[
        int, Meta(description="Concurrent lookups; more are refused (TooManyRequests).", ge=1)
    ] = 50_000
    http_connections: Annotated[
        int,
        Meta(
            description="Maximum number of HTTP connections; more get 503, or nothing over TLS.",
            ge=1,
        ),
    ] = 1_000
    http_body_bytes: Annotated[
        int, Meta(description="Largest body of an HTTP request; larger ones get 413.", ge=1024)
    ] = 16 * 1024 * 1024
    drain_seconds: Annotated[
        float, Meta(description="Time after SIGTERM to finish work in progress.", gt=0, le=3600)
    ] = 8.0


class Log(Struct, frozen=True):
    """The log on standard error: one line per notable event, nothing per message."""

    level: Annotated[Level, Meta(description="Lowest level that is logged.")] = "info"
    format: Annotated[
        Literal["text", "json"], Meta(description="Text lines, or one JSON object per line.")
    ] = "text"
    levels: Annotated[
        dict[str, Level],
        Meta(description='Levels of individual parts, such as {"wire.pulsar" = "debug"}.'),
    ] = {}
