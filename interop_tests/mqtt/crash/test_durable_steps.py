"""The server is killed by its disk: as soon as something is durable, before anybody hears of it.

So each step of QoS 1 and 2 is interrupted between the append and its acknowledgement: the kill
comes after the first durable write of the step, then after the second one, until it is completed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import magnetar
from interop_tests import disks
from magnetar.wire.mqtt.tests.peer import Received

from .device import Device, crash, stored, watch

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's"),
    pytest.mark.parametrize("version", [4, 5]),
]
SWEEPS_MAX = 5
"""Something else may become durable meanwhile, such as the place of a session: then once more."""
WRITES_MAX = 30


class Killing:
    """A server on a disk that kills it."""

    def __init__(self, server: Any, mark: Path) -> None:
        self.server = server
        self._mark = mark
        self.seen = False
        """Whether a kill came between what was to be durable and its acknowledgement."""

    def completes(self, writes: int, step: Callable[[], None]) -> bool:
        """Have it killed after so many durable writes; whether the step is completed before.

        Then the server is killed all the same, and started again.
        """
        self._mark.write_text(str(writes))
        try:
            step()
        except OSError:
            completed = False
        else:
            completed = True
        self._mark.unlink()
        crash(self.server)
        return completed

    def sweep(self, turn: Callable[[int, int], bool]) -> None:
        """Play turns until one completes, and again until one has been `seen` before."""
        number = 0
        for _ in range(SWEEPS_MAX):
            for writes in range(1, WRITES_MAX):
                number += 1
                if turn(number, writes):
                    break
            else:
                raise AssertionError("the step is never completed")
            if self.seen:
                return
        raise AssertionError("no kill between what was to be durable and its acknowledgement")


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    return disks.library(tmp_path_factory.mktemp("c"))


@pytest.fixture
def killing(library, tmp_path, monkeypatch) -> Iterator[Killing]:
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("KILLING_DISK", str(tmp_path / "writes"))
    with magnetar.standalone() as server:
        yield Killing(server, tmp_path / "writes")


@pytest.mark.parametrize("qos", [1, 2])
def test_a_publish_that_is_durable(killing, version, qos):
    """Its publisher sends it again with DUP: of QoS 2, it is there once [MQTT-4.3.3-10]."""
    watch(killing.server)
    answer = "PUBACK" if qos == 1 else "PUBREC"

    def turn(number: int, writes: int) -> bool:
        payload = b"%d" % number
        with Device(killing.server, "p", version) as device:

            def step() -> None:
                device.publish(payload, qos, number)
                device.hear(answer, number)

            completed = killing.completes(writes, step)
        before = stored(killing.server)
        with Device(killing.server, "p", version) as device:
            assert device.resumed
            device.publish(payload, qos, number, dup=True)
            device.hear(answer, number)
            if qos == 2:
                device.acknowledge("PUBREL", number)
                device.hear("PUBCOMP", number)
        assert before in ([], [payload])
        assert before or not completed, "what is acknowledged is there"
        assert stored(killing.server) == ([] if before and qos == 2 else [payload])
        killing.seen |= bool(before) and not completed
        return completed

    killing.sweep(turn)


def test_a_release_that_is_durable(killing, version):
    """PUBREL comes again, and its packet identifier is free for another message."""
    watch(killing.server)

    def turn(number: int, writes: int) -> bool:
        first, second = b"%d" % number, b"%d, the next" % number
        with Device(killing.server, "p", version) as device:
            device.publish(first, 2, number)
            device.hear("PUBREC", number)

            def step() -> None:
                device.acknowledge("PUBREL", number)
                device.hear("PUBCOMP", number)

            completed = killing.completes(writes, step)
        with Device(killing.server, "p", version) as device:
            assert device.resumed
            for _ in range(2):
                device.acknowledge("PUBREL", number)
                device.hear("PUBCOMP", number)
            device.publish(second, 2, number)
            device.hear("PUBREC", number)
            device.acknowledge("PUBREL", number)
            device.hear("PUBCOMP", number)
        assert stored(killing.server) == [first, second]
        killing.seen |= not completed
        return completed

    killing.sweep(turn)


def resumed(killing: Killing, version: int, number: int) -> tuple[str, bool]:
    """What the subscriber gets first about the message of that packet identifier: its kind, and
    DUP. Then the exchange is completed.
    """
    with Device(killing.server, "s", version) as device:
        assert device.resumed
        while (packet := device.take()).number != number:
            device.acknowledge("PUBCOMP", packet.number)
        if packet.kind == "PUBLISH":
            device.acknowledge("PUBREC", number)
            device.hear("PUBREL", number)
        device.acknowledge("PUBCOMP", number)
        assert device.take_until_ping() == []
        return packet.kind, packet.dup


def test_a_pubrec_that_is_durable(killing, version):
    """The subscriber gets PUBREL, or what it has already with DUP, and never a second message."""
    with Device(killing.server, "s", version) as device:
        device.subscribe("t", 2)

    def turn(number: int, writes: int) -> bool:
        with Device(killing.server, "s", version) as device:
            with Device(killing.server, "p", version, clean=True) as writer:
                writer.publish(b"%d" % number, 2, 1)
                writer.hear("PUBREC", 1)
            while (packet := device.take()).kind == "PUBREL":  # PUBCOMP was not durable yet
                device.acknowledge("PUBCOMP", packet.number)
            assert packet.payload == b"%d" % number

            def step() -> None:
                device.acknowledge("PUBREC", packet.number)
                device.hear("PUBREL", packet.number)

            completed = killing.completes(writes, step)
        kind, dup = resumed(killing, version, packet.number)
        if completed:
            assert kind == "PUBREL", "the message is not sent after PUBREL"
        assert kind == "PUBREL" or dup
        killing.seen |= kind == "PUBREL" and not completed
        return completed

    killing.sweep(turn)


@pytest.mark.parametrize("filter", ["t", "$share/g/t"])
def test_a_puback_that_is_durable(killing, version, filter):
    """The message does not come again, and all that come after it do."""
    with Device(killing.server, "s", version) as device:
        device.subscribe(filter, 1)
    for writes in range(1, 1 + SWEEPS_MAX):
        again = acknowledged(killing, version, writes)
        assert again in ([], [b"%d" % writes])
        if not again:
            return
    raise AssertionError("the acknowledgement is never durable")


def acknowledged(killing: Killing, version: int, writes: int) -> list[bytes]:
    """Acknowledge a message, and have the server killed after so many writes; what comes then."""
    payload = b"%d" % writes
    with Device(killing.server, "s", version) as device:
        publish(killing.server, version, payload)
        packet = take_all(device, payload)[-1]

        def step() -> None:
            device.acknowledge("PUBACK", packet.number)
            device.take()  # until the kill

        assert not killing.completes(writes, step)
    publish(killing.server, version, b"next")
    with Device(killing.server, "s", version) as device:
        assert device.resumed
        *again, last = take_all(device, b"next")
        device.acknowledge("PUBACK", last.number)
        assert device.take_until_ping() == []
    assert all(packet.dup for packet in again)
    return [packet.payload for packet in again]


def publish(server: Any, version: int, payload: bytes) -> None:
    with Device(server, "p", version, clean=True) as writer:
        writer.publish(payload, 1, 1)
        writer.hear("PUBACK", 1)


def take_all(device: Device, last: bytes) -> list[Received]:
    """Messages up to this one; all before it are acknowledged."""
    found = [device.take()]
    while found[-1].payload != last:
        device.acknowledge("PUBACK", found[-1].number)
        found.append(device.take())
    return found
