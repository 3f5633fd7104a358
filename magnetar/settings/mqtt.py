"""Settings of the MQTT front."""

from typing import Annotated

from msgspec import Meta, Struct

DAY_SECONDS = 86_400


class Mqtt(Struct, frozen=True):
    """The MQTT front. Its topics and their policies are configured in `[broker]`."""

    namespace: Annotated[
        str, Meta(description="Namespace of the topics that store MQTT messages.", min_length=1)
    ] = "public/default"
    rules: Annotated[
        dict[str, str],
        Meta(
            description="Which topic stores which MQTT topics, by filter, in order; `{each}` for a "
            'topic of its own for each: {"orders/#" = "orders", "old/#" = "{each}"}. All others '
            "are stored in the topic `mqtt`."
        ),
    ] = {}
    acl_file: Annotated[
        str,
        Meta(
            description="Which MQTT topics who may use, a file as Mosquitto's of this name, with "
            "`%c` and `%u` in patterns; read again when it changes. Empty: the rights to the "
            "topics that store messages decide."
        ),
    ] = ""
    mount_points: Annotated[
        dict[str, str],
        Meta(
            description="Namespaces with listeners of their own, whose clients see nothing else: "
            '{"acme/devices" = "1884 tls:8885 ws:8085 wss:8086"}. A port may be 0 as above.'
        ),
    ] = {}
    receive_maximum: Annotated[
        int,
        Meta(
            description="QoS 1 and 2 messages that a client may send before the first is "
            "acknowledged.",
            ge=1,
            le=65_535,
        ),
    ] = 1_000
    max_inflight_messages: Annotated[
        int,
        Meta(
            description="QoS 1 and 2 messages in flight to one client, if that accepts as many.",
            ge=1,
            le=65_535,
        ),
    ] = 1_000
    topic_alias_maximum: Annotated[
        int, Meta(description="Topic aliases of a connection, each way.", ge=0, le=65_535)
    ] = 64
    max_keepalive_seconds: Annotated[
        int,
        Meta(
            description="Longest keep-alive interval; MQTT 5.0 clients that want a longer one, or "
            "none, get this one. 0 for no limit.",
            ge=0,
            le=65_535,
        ),
    ] = 0
    session_expiry_seconds: Annotated[
        int,
        Meta(
            description="Longest life of a session after its connection; also the life of an MQTT "
            "3 session without clean session. 0 for no limit.",
            ge=0,
            le=2**32 - 1,
        ),
    ] = 7 * DAY_SECONDS
    max_subscriptions_per_session: Annotated[
        int, Meta(description="Maximum number of subscriptions of one session.", ge=1)
    ] = 10_000
    max_subscription_kb_per_session: Annotated[
        int,
        Meta(
            description="Maximum size of the filters of one session, which are stored together "
            "when one of them changes.",
            ge=1,
        ),
    ] = 1024
    websocket_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web pages that may connect over WebSocket, such as "
            '`["https://app.example.org"]`, besides those of this server\'s own host; `*` for any.'
        ),
    ] = ()
    sys_interval: Annotated[
        int,
        Meta(description="Seconds between updates of the topics under `$SYS`; 0 for none.", ge=0),
    ] = 10
    session_memory_mb: Annotated[
        int,
        Meta(
            description="Memory for the records of sleeping sessions; others are read from "
            "storage when their clients come back.",
            ge=1,
        ),
    ] = 16
    session_storage_mb: Annotated[
        int,
        Meta(
            description="Size of the records of all sessions; beyond it, clients whose session "
            "would outlive their connection are refused, if they are new.",
            ge=1,
        ),
    ] = 1024
    subscription_memory_mb: Annotated[
        int,
        Meta(
            description="Memory for the subscriptions of all connected clients; more are refused.",
            ge=1,
        ),
    ] = 256
    retained_memory_mb: Annotated[
        int,
        Meta(description="Retained messages in memory; others are read from storage.", ge=1),
    ] = 64
