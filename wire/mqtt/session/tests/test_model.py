"""Sessions beside a model of the specification: clients that come, go, publish and acknowledge in
any order, and a server that stops or crashes between.

The model knows what each session has to get (`must`) and what it may get (`may`): messages of QoS
0, and those that were not sent yet when a subscription changed. It checks each packet of the
server: QoS 2 comes once, QoS 1 at least once, per topic and QoS in order, again only with DUP and
the same packet identifier, never more than the window, and nothing to a filter that is
unsubscribed.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec import Struct, field

from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, Received, acknowledge
from magnetar.wire.mqtt.topics import matches

NAMES = st.sampled_from(["a", "b", "c"])
WHO = st.integers(0, 2)
VERSIONS = st.sampled_from([V3, V5])
ONCE_OF_FOUR = st.integers(0, 3).map(lambda value: value == 3)
TOPICS = st.sampled_from(["t/0", "t/1", "u"])
FILTERS = st.sampled_from(["t/0", "t/+", "t/#", "u", "#"])
QOS = st.sampled_from([0, 1, 2])
INFLIGHT_MAX = 4
TWO_LOGS = (MappingRule("u", "other"),)
"""Messages of `u` are stored in a log of their own: sessions read both."""
UNRELEASED_MAX = 6
EXPIRY = b"\x11\0\0\x0e\x10"
"""Session Expiry Interval: an hour."""


class Server:
    """A server in a thread with its own loop, which steps are run in."""

    def __init__(self) -> None:
        self._stores = Stores()
        self._started = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._ends = self._is_orderly = False
        self._wakeup: trio.Event | None = None
        self.stage: Stage | None = None
        self._thread = threading.Thread(target=trio.run, args=(self._run,))
        self._thread.start()
        self._started.wait()

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        while not self._ends:
            self._wakeup = trio.Event()
            options = {"inflight_max": INFLIGHT_MAX, "rules": TWO_LOGS}
            async with serving(self._stores, **options) as self.stage:
                await settled()
                self._started.set()
                await self._wakeup.wait()
                if self._is_orderly:
                    await self.stage.front.stop()

    def run(self, step: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        return trio.from_thread.run(step, *args, trio_token=self._token)

    def restart(self, *, orderly: bool, end: bool = False) -> None:
        """Stop the server, in order or not, and start the next one on the same stores."""
        self._is_orderly, self._ends = orderly, end
        self._started.clear()
        assert self._wakeup is not None
        trio.from_thread.run_sync(self._wakeup.set, trio_token=self._token)
        if end:
            self._thread.join()
        else:
            self._started.wait()


class Message(Struct):
    """A message that was published."""

    topic: str
    qos: int


class Delivery(Struct):
    """A message of QoS 1 or 2 that a session has received, until the exchange is over."""

    payload: int
    number: int
    qos: int
    released: bool = False
    """The server has sent PUBREL."""
    recorded: bool = False
    """The client has sent PUBREC."""


class Session(Struct):
    """What client and server both know of a session."""

    lasts: bool
    filters: dict[str, int] = field(default_factory=dict)
    must: set[int] = field(default_factory=set)
    may: dict[int, set[int]] = field(default_factory=dict)
    """All that may come, with the QoS that it may have."""
    in_flight: list[Delivery] = field(default_factory=list)
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Packet identifier and QoS of what has come."""
    unreleased: dict[int, int] = field(default_factory=dict)
    """Messages of QoS 2 that the client has sent and not released, by packet identifier."""
    completed: set[int] = field(default_factory=set)
    """Messages of QoS 2 whose exchange is over."""
    doubtful: set[int] = field(default_factory=set)
    """Messages that it was sent before a crash, and does not ask for any more."""
    crashed: bool = False
    """A server that it was connected to has crashed."""

    def granted(self, topic: str) -> int | None:
        found = [qos for filter, qos in self.filters.items() if matches(filter, topic)]
        return max(found, default=None)


class Peer(Struct):
    """A client that is connected."""

    client: Client
    window: int
    here: set[int] = field(default_factory=set)
    """Packet identifiers that this connection has brought, and that are in flight."""
    last: dict[tuple[str, int], int] = field(default_factory=dict)
    """The last payload by topic and QoS."""
    answers: list[Received] = field(default_factory=list)


class Model(RuleBasedStateMachine):
    """See the module's docstring."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.sessions: dict[str, Session] = {}
        self.peers: dict[str, Peer] = {}
        self.messages: list[Message] = []
        self.restarted = 0
        """How many messages there were then."""

    def teardown(self) -> None:
        try:
            self._drain()
        finally:
            self.server.restart(orderly=False, end=True)

    # -- what clients do ------------------------------------------------------------------------

    def _at(self, who: int) -> str:
        """One of the clients that are connected."""
        names = sorted(self.peers)
        return names[who % len(names)]

    @initialize(versions=st.tuples(VERSIONS, VERSIONS), granted=st.tuples(QOS, QOS))
    def begin(self, versions: tuple[int, int], granted: tuple[int, int]) -> None:
        """Two clients whose sessions last, which subscribe."""
        for who, (version, qos) in enumerate(zip(versions, granted, strict=True)):
            self._connect("ab"[who], version, False, True, 3)
            self.subscribe(who, "#", qos)

    @precondition(lambda self: len(self.peers) < 3)
    @rule(
        name=NAMES,
        version=VERSIONS,
        clean=ONCE_OF_FOUR,
        brief=ONCE_OF_FOUR,
        window=st.integers(1, 6),
    )
    def connect(self, name: str, version: int, clean: bool, brief: bool, window: int) -> None:
        if name not in self.peers:
            self._connect(name, version, clean, not brief, window)

    @precondition(lambda self: self.peers)
    @rule(who=WHO, version=VERSIONS, clean=ONCE_OF_FOUR, window=st.integers(1, 6))
    def take_over(self, who: int, version: int, clean: bool, window: int) -> None:
        self._connect(self._at(who), version, clean, True, window)

    def _connect(self, name: str, version: int, clean: bool, expires: bool, window: int) -> None:
        stage = self.server.stage
        assert stage is not None
        before = self.peers.pop(name, None)
        kept = self.sessions.get(name)
        if kept is not None and (clean or not kept.lasts):
            kept = None
        lasts = expires if version == V5 else not clean
        properties = b""
        if version == V5:
            properties = b"\x21" + window.to_bytes(2) + (EXPIRY if expires else b"")
        options = {"version": version, "clean": clean, "properties": properties}
        client, packets = self.server.run(self._connects, stage, name, options)
        connack, *packets = packets
        assert connack.kind == "CONNACK"
        assert connack.reasons == (0,)
        assert connack.number == (kept is not None), "session present"
        if before is not None:
            self._displaced(before)
        if kept is None:
            self.sessions[name] = Session(lasts)
        else:
            kept.lasts = lasts
        self.peers[name] = Peer(
            client, min(window, INFLIGHT_MAX) if version == V5 else INFLIGHT_MAX
        )
        self._hear(name, packets)
        self._hear_all()

    @staticmethod
    async def _connects(stage: Stage, name: str, options: Any) -> Any:
        return await stage.connects(name, **options)

    def _displaced(self, before: Peer) -> None:
        packets = self.server.run(before.client.receive)
        ends = [one.reasons for one in packets if one.kind == "DISCONNECT"]
        assert ends == ([(0x8E,)] if before.client.version == V5 else [])
        self.server.run(before.client.is_cut)

    @precondition(lambda self: self.peers)
    @rule(who=WHO, filter=FILTERS, qos=QOS)
    def subscribe(self, who: int, filter: str, qos: int) -> None:
        name = self._at(who)
        version = self.peers[name].client.version
        self._says(name, peer.subscribe((filter, qos), number=9, version=version))
        assert self._answer(name, "SUBACK").reasons == (qos,)
        self.sessions[name].filters[filter] = qos
        self._changed(self.sessions[name])

    @precondition(lambda self: self.peers)
    @rule(who=WHO, filter=FILTERS)
    def unsubscribe(self, who: int, filter: str) -> None:
        name = self._at(who)
        version = self.peers[name].client.version
        self._says(name, peer.unsubscribe(filter, number=9, version=version))
        self._answer(name, "UNSUBACK")
        self.sessions[name].filters.pop(filter, None)
        self._changed(self.sessions[name])

    def _changed(self, session: Session) -> None:
        """What was not sent yet comes as the subscriptions are now, or not at all.

        After a crash the server does not know what it had sent last, so that counts as not sent,
        too, until it comes again.
        """
        open_again = {one.payload for one in session.in_flight} if session.crashed else set()
        for payload in session.may:
            _, seen_qos = session.seen.get(payload, (0, 0))
            if seen_qos and payload not in open_again:
                continue
            message = self.messages[payload]
            granted = session.granted(message.topic)
            qos = 0 if granted is None else min(granted, message.qos)
            session.may[payload].add(qos)
            if not qos:
                session.must.discard(payload)
                if session.crashed:
                    session.doubtful.add(payload)

    @precondition(lambda self: self.peers)
    @rule(who=WHO, sent=st.lists(st.tuples(TOPICS, QOS), min_size=1, max_size=6))
    def publish(self, who: int, sent: list[tuple[str, int]]) -> None:
        for topic, qos in sent:
            self._publish(self._at(who), topic, qos)

    def _publish(self, name: str, topic: str, qos: int) -> None:
        session = self.sessions[name]
        if len(session.unreleased) >= UNRELEASED_MAX:
            return
        payload = len(self.messages)
        self.messages.append(Message(topic, qos))
        for one in self.sessions.values():
            self._expect(one, payload)
        number = next(each for each in range(1, 99) if each not in session.unreleased) if qos else 0
        self._says(name, self._packet(name, payload, number))
        if qos:
            answer = self._answer(name, "PUBACK" if qos == 1 else "PUBREC")
            assert answer.number == number
        if qos == 2:
            session.unreleased[number] = payload

    def _expect(self, session: Session, payload: int) -> None:
        message = self.messages[payload]
        granted = session.granted(message.topic)
        if granted is not None:
            qos = min(granted, message.qos)
            session.may[payload] = {qos}
            if qos:
                session.must.add(payload)

    def _packet(self, name: str, payload: int, number: int, *, dup: bool = False) -> bytes:
        message, version = self.messages[payload], self.peers[name].client.version
        return peer.publish(
            message.topic, b"%d" % payload, qos=message.qos, number=number, dup=dup, version=version
        )

    @precondition(lambda self: self.peers)
    @rule(who=WHO, place=st.integers(0, UNRELEASED_MAX))
    def publish_again(self, who: int, place: int) -> None:
        """A message of QoS 2 is published once, however often it is sent before PUBREL."""
        name = self._at(who)
        if unreleased := list(self.sessions[name].unreleased.items()):
            number, payload = unreleased[place % len(unreleased)]
            self._says(name, self._packet(name, payload, number, dup=True))
            assert self._answer(name, "PUBREC").number == number

    @precondition(lambda self: self.peers)
    @rule(who=WHO, place=st.integers(0, UNRELEASED_MAX))
    def release(self, who: int, place: int) -> None:
        name = self._at(who)
        if unreleased := list(self.sessions[name].unreleased):
            number = unreleased[place % len(unreleased)]
            self._says(name, acknowledge("PUBREL", number))
            assert self._answer(name, "PUBCOMP").number == number
            del self.sessions[name].unreleased[number]

    @precondition(lambda self: self.peers)
    @rule(who=WHO, places=st.lists(st.integers(0, INFLIGHT_MAX), min_size=1, max_size=6))
    def acknowledge(self, who: int, places: list[int]) -> None:
        name = self._at(who)
        for place in places:
            if in_flight := self._answerable(name):
                self._acknowledge(name, in_flight[place % len(in_flight)])

    def _answerable(self, name: str) -> list[Delivery]:
        """What this connection has brought, and the client can answer."""
        here = self.peers[name].here
        return [
            one
            for one in self.sessions[name].in_flight
            if one.number in here and (one.released or not one.recorded)
        ]

    def _acknowledge(self, name: str, one: Delivery) -> None:
        if one.qos == 2 and not one.released:
            one.recorded = True
            self._says(name, acknowledge("PUBREC", one.number))
            return
        self.sessions[name].in_flight.remove(one)
        if one.qos == 2:
            self.sessions[name].completed.add(one.payload)
        self.peers[name].here.discard(one.number)
        self._says(name, acknowledge("PUBACK" if one.qos == 1 else "PUBCOMP", one.number))

    @precondition(lambda self: self.peers)
    @rule(who=WHO, politely=st.booleans())
    def leave(self, who: int, politely: bool) -> None:
        name = self._at(who)
        left = self.peers.pop(name)
        self.server.run(left.client.leaves if politely else left.client.is_cut)
        self._forget_unless_it_lasts(name)

    def _forget_unless_it_lasts(self, name: str) -> None:
        if not self.sessions[name].lasts:
            del self.sessions[name]

    @rule()
    def wait(self) -> None:
        """Acknowledgements are stored."""
        stage = self.server.stage
        assert stage is not None
        self.server.run(stage.forward, 0.3)
        self._hear_all()

    @precondition(lambda self: self.messages and self.restarted < len(self.messages))
    @rule(orderly=st.booleans())
    def restart(self, orderly: bool) -> None:
        self.restarted = len(self.messages)
        self.server.restart(orderly=orderly)
        for name in list(self.sessions):
            if self.peers.pop(name, None) is not None:
                self.sessions[name].crashed |= not orderly
                self._forget_unless_it_lasts(name)

    # -- what the server says ---------------------------------------------------------------------

    def _says(self, name: str, packet: bytes) -> None:
        self._hear(name, self.server.run(self.peers[name].client.says, packet))
        self._hear_all()

    def _hear_all(self) -> None:
        for name, one in self.peers.items():
            self._hear(name, self.server.run(one.client.receive))

    def _hear(self, name: str, packets: list[Received]) -> None:
        for packet in packets:
            if packet.kind == "PUBLISH":
                self._received(name, packet)
            elif packet.kind == "PUBREL":
                self._released(name, packet.number)
            else:
                assert packet.kind != "DISCONNECT", packet
                self.peers[name].answers.append(packet)

    def _answer(self, name: str, kind: str) -> Received:
        """The only answer to what was said."""
        answers, self.peers[name].answers = self.peers[name].answers, []
        (found,) = answers
        assert found.kind == kind
        return found

    def _received(self, name: str, packet: Received) -> None:
        session, connected, payload = self.sessions[name], self.peers[name], int(packet.payload)
        assert payload in session.may, "nobody has asked for it"
        before = session.seen.get(payload)
        qos = packet.qos
        if before is None or not before[1]:  # QoS 0 is sent to who lags, too, and QoS 1 may follow
            assert qos in session.may[payload]
            assert not packet.dup or session.crashed
        else:
            assert packet.dup
            assert qos
            assert before[0] == packet.number, "it has the same identifier"
            assert before[1] == qos or (session.crashed and qos in session.may[payload])
        last = connected.last.get((packet.topic, qos), -1)
        assert payload > last, "in their order"
        connected.last[packet.topic, qos] = payload
        session.seen[payload] = (packet.number, qos)
        session.must.discard(payload)
        if qos:
            self._in_flight(session, connected, packet)

    def _in_flight(self, session: Session, connected: Peer, packet: Received) -> None:
        payload, number = int(packet.payload), packet.number
        found = [one for one in session.in_flight if one.payload == payload]
        if found:
            assert not found[0].released, "PUBREL was sent before"
        elif packet.qos == 2:
            assert payload not in session.completed, "QoS 2 comes once"
        assert number not in connected.here, "the identifier is in use"
        if not found:
            others = [one for one in session.in_flight if one.number == number]
            assert not others, "the identifier is in use"
            session.in_flight.append(Delivery(payload, number, packet.qos))
        connected.here.add(number)
        assert len(connected.here) <= connected.window, "Receive Maximum"

    def _released(self, name: str, number: int) -> None:
        session = self.sessions[name]
        found = [one for one in session.in_flight if one.number == number and one.qos == 2]
        for one in found:
            assert one.recorded, "PUBREL before PUBREC"
            one.released = True
        if found:
            self.peers[name].here.add(number)
        else:
            assert session.crashed, "PUBCOMP was sent"

    # -- the end ----------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Everybody who has a session connects, and acknowledges everything."""
        for name in list(self.sessions):
            if name not in self.peers:
                self._connect(name, V3, False, True, 5)
            while answerable := self._answerable(name):
                self._acknowledge(name, answerable[0])
            assert not self.sessions[name].must, f"{name} has not got all"
            left = {one.payload for one in self.sessions[name].in_flight}
            assert left <= self.sessions[name].doubtful, "an exchange is not completed"


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
