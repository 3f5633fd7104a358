"""paho, gmqtt and amqtt with one face; they connect again by themselves.

Those of asyncio run on a loop in a thread. `close` ends all that they have begun there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import gmqtt
import paho.mqtt.client as paho
from amqtt.client import MQTTClient
from amqtt.errors import AMQTTError
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from interop_tests.mqtt.conftest import Paho
from interop_tests.mqtt.leftovers import end_all
from interop_tests.mqtt.python.test_gmqtt import Device as Gmqtt

SECONDS = 60.0
RETRY_SECONDS = 0.05
SESSION_SECONDS = 100


class Came(NamedTuple):
    """A message that a client has received."""

    payload: bytes
    qos: int
    retain: bool


class Will(NamedTuple):
    """What is published when the client is lost."""

    topic: str
    payload: bytes
    qos: int


class Client(Protocol):
    """One connected client. Its session lasts."""

    def subscribe(self, name: str, qos: int) -> None: ...

    def post(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False
    ) -> Callable[[], object]:
        """Publish; the result waits until it is acknowledged, whatever happens to the server."""

    def take(self) -> Came:
        """The next message."""

    def close(self) -> None:
        """Disconnect, unless the server is gone; a second time, nothing."""


class Kind(NamedTuple):
    """A client in one version of MQTT."""

    connect: Callable[..., Client]
    version: int
    discards_repeats: bool
    """Whether the application gets a message of QoS 2 once, although it comes again with DUP."""


def keep_pubrels(client: paho.Client, _: object) -> None:
    """Have PUBRELs still sent after an attempt to connect that failed. Of a second attempt paho 2.2
    makes a new message instead (`_messages_reconnect_reset_out`), which the server cannot know.
    """
    for message in client._out_messages.values():
        if message.state == paho.mqtt_ms_resend_pubrel:
            message.state = paho.mqtt_ms_wait_for_pubcomp


class PahoClient:
    """Eclipse's, with a thread of its own."""

    def __init__(
        self, address: str, name: str, version: int, will: Will | None, again: bool
    ) -> None:
        options: dict[str, Any] = {"reconnect_on_failure": again}
        connecting: dict[str, Any] = {}
        if version == 5:
            connecting["properties"] = Properties(PacketTypes.CONNECT)
            connecting["properties"].SessionExpiryInterval = SESSION_SECONDS
            connecting["clean_start"] = False
        else:
            options["clean_session"] = False
        self._paho = Paho(address, name, version, **options)
        self._paho.client.reconnect_delay_set(RETRY_SECONDS, RETRY_SECONDS)
        self._paho.client.on_connect_fail = keep_pubrels
        if will is not None:
            self._paho.client.will_set(*will)
        self._paho.connect(**connecting)

    def subscribe(self, name: str, qos: int) -> None:
        assert self._paho.subscribe(name, qos) == [qos]

    def post(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False
    ) -> Callable[[], object]:
        posted = self._paho.client.publish(topic, payload, qos, retain)
        if posted.rc == MQTTErrorCode.MQTT_ERR_NO_CONN:
            # kept until it is connected again, of which what waits for a message knows nothing
            posted.rc = MQTTErrorCode.MQTT_ERR_SUCCESS

        def wait() -> None:
            posted.wait_for_publish(SECONDS)
            assert posted.is_published()

        return wait

    def take(self) -> Came:
        (message,) = self._paho.take(1)
        return Came(message.payload, message.qos, message.retain)

    def close(self) -> None:
        self._paho.disconnect()


class Loop:
    """An asyncio loop in a thread, for one client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, Any]) -> Callable[[], Any]:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return lambda: future.result(SECONDS)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.begin(work)()

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        """End with all tasks, so that nobody connects any more."""
        self.run(end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()


class GmqttClient:
    """An asyncio client that keeps what is not acknowledged."""

    def __init__(
        self, address: str, name: str, version: int, will: Will | None, again: bool
    ) -> None:
        self._loop = Loop()
        self._device: Gmqtt = self._loop.run(self._connected(address, name, version, will))
        if not again:
            self._device.stays_away()

    async def _connected(self, address: str, name: str, version: int, will: Will | None) -> Gmqtt:
        options = {} if will is None else {"will_message": gmqtt.Message(*will)}
        device = Gmqtt(name, lasts=True, **options)
        device.client.set_config({"reconnect_delay": RETRY_SECONDS})
        host, _, port = address.rpartition(":")
        await device.client.connect(host, int(port), version=version)
        return device

    def subscribe(self, name: str, qos: int) -> None:
        assert self._loop.run(self._device.subscribe(name, qos)) == qos

    def post(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False
    ) -> Callable[[], object]:
        return self._loop.begin(self._device.publish(topic, payload, qos, retain=retain))

    def take(self) -> Came:
        return Came(*self._loop.run(self._device.take(1))[0])

    def close(self) -> None:
        if self._loop.is_closed:
            return
        self._device.stays_away()
        self._loop.run(self._device.client.disconnect())
        self._loop.close()


class AmqttClient:
    """An asyncio client of 3.1.1, with its own settings for connecting again."""

    def __init__(self, address: str, name: str, _: int, will: Will | None, again: bool) -> None:
        config: dict[str, Any] = {
            "auto_reconnect": again, "reconnect_retries": -1, "reconnect_max_interval": 1
        }  # fmt: skip
        if will is not None:
            config["will"] = {
                "topic": will.topic,
                "message": will.payload.decode(),
                "qos": will.qos,
                "retain": False,
            }
        self._loop = Loop()
        self._client = self._loop.run(self._connected(f"mqtt://{address}/", name, config))

    @staticmethod
    async def _connected(url: str, name: str, config: dict[str, Any]) -> MQTTClient:
        client = MQTTClient(name, config=config)
        await client.connect(url, cleansession=False)
        return client

    def subscribe(self, name: str, qos: int) -> None:
        assert self._loop.run(self._client.subscribe([(name, qos)])) == [qos]

    def post(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False
    ) -> Callable[[], object]:
        return self._loop.begin(
            self._until_done(lambda: self._client.publish(topic, payload, qos=qos, retain=retain))
        )

    def take(self) -> Came:
        message = self._loop.run(self._until_done(self._client.deliver_message))
        return Came(bytes(message.data), message.qos, message.publish_packet.retain_flag)

    @staticmethod
    async def _until_done(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """A call that the end of a connection interrupts is made again: amqtt (0.12) forgets a
        message that is in flight then, and fails with errors of its own code. It also cancels
        what waits for an acknowledgement, not the task that waits.
        """
        while True:
            try:
                return await call()
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
            except (AMQTTError, OSError, AttributeError, AssertionError):
                pass
            await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        if self._loop.is_closed:
            return
        with suppress(AMQTTError, OSError):
            self._loop.run(self._client.disconnect())
        self._loop.close()


KINDS = {
    "paho, 3.1.1": Kind(PahoClient, 4, discards_repeats=True),
    "paho, 5.0": Kind(PahoClient, 5, discards_repeats=True),
    "gmqtt, 3.1.1": Kind(GmqttClient, 4, discards_repeats=False),
    "gmqtt, 5.0": Kind(GmqttClient, 5, discards_repeats=False),
    "amqtt": Kind(AmqttClient, 4, discards_repeats=False),
}
