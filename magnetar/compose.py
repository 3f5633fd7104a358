"""The composition root: the only place that joins fronts, core and storage. Read this first.

    doors (sockets) -> link -> fronts -> broker -> managed ledgers   -> embedded bookie
                                                -> catalog, cursors  -> metadata

Nothing is decided here but who knows whom, in which order things start, and that they stop in the
opposite one: doors close and nobody is read any more, topics are unloaded (what is in flight is
stored and answered, cursors are saved), every peer hears its answers, storage closes. A
storage that fails for good ends the process: what it acknowledged is safe, and what it would
acknowledge from then on might not be.
"""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from magnetar import memory, shares
from magnetar.bookie.embedded import EmbeddedStore, open_embedded
from magnetar.certificates import server_contexts
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import BrokerError, Corrupted, StorageFailed
from magnetar.core.kernel.spare_files import SpareFiles
from magnetar.core.ledger.reports import NO_WRITES
from magnetar.core.link.connection import Connection
from magnetar.core.link.loop import Link, Protocol
from magnetar.core.link.tls import TlsWire
from magnetar.core.link.wire import Session, Wire
from magnetar.core.metadata.embedded import EmbeddedMetadata
from magnetar.core.metadata.embedded import open_embedded as open_metadata
from magnetar.doors import address, host_names, open_doors
from magnetar.measures import parts as measures
from magnetar.ready import ReadyReport
from magnetar.settings import Settings
from magnetar.trouble import OperatorError
from magnetar.wire.http.app import Door, serve_http
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.pulsar.session.session import PulsarFront

log = logging.getLogger(__name__)

METADATA = "metadata"
BOOKIE = "bookie"


async def serve(settings: Settings, ready: Callable[[ReadyReport], None], stop: trio.Event) -> None:
    """Open the doors, serve, and leave in good order once `stop` is set."""
    contexts = server_contexts(settings)
    doors = open_doors(settings)
    addresses = {name: address(door) for name, door in doors.items()}
    clock = SystemClock()
    link = Link(clock, shares.link_limits(settings))
    link.http_host, link.http_port = settings.listen.advertised_host, doors["http"].getsockname()[1]
    spare = SpareFiles()
    async with _storage(settings, link) as (store, metadata), trio.open_nursery() as nursery:
        broker = Broker(shares.broker_settings(settings), store, metadata, clock, link.soon)
        _join(link, broker, store)
        # First of all: the journal tells of its writes through it, and whoever starts may write.
        await nursery.start(link.run)
        pulsar = PulsarFront(broker, shares.pulsar_options(settings, addresses))
        kafka = KafkaFront(
            broker, shares.kafka_options(settings, partial(_room, settings)), spare.lent
        )
        await nursery.start(broker.run)
        await kafka.open()
        protocols = _protocols(pulsar, kafka, contexts)
        for name, protocol in protocols.items():
            link.listen(doors[name], protocol, name, refuses="pulsar" in name)
        web: list[Door] = [(doors["http"], None)]
        web += [(door, contexts["https"]) for door in _named(doors, "https")]
        await nursery.start(
            partial(
                serve_http,
                broker,
                shares.http_options(
                    settings,
                    addresses,
                    host_names(settings.listen, doors["http"]),
                    partial(_trouble, store),
                ),
                web,
                lend=spare.lent,
                extra_metrics=lambda: measures.families(link.statistics(), store.statistics()),
            )
        )
        nursery.start_soon(kafka.run)
        nursery.start_soon(memory.give_back_what_is_not_needed)
        ready(ReadyReport(addresses))
        await stop.wait()
        link.stop_reading()
        await broker.stop()
        await link.stop()
        nursery.cancel_scope.cancel()


def _join(link: Link, broker: Broker, store: EmbeddedStore) -> None:
    """What each tells the others of, sweep by sweep."""
    link.hooks += [
        store.begin_group,
        broker.dispatch,
        broker.store,
        store.flush_group,
        lambda: link.hold_writers(store.congested),
    ]
    broker.gathers = True
    store.on_delivering, store.on_delivered = link.begin, link.settle
    store.on_relieved = link.soon


def _protocols(
    pulsar: PulsarFront, kafka: KafkaFront, contexts: Mapping[str, ssl.SSLContext]
) -> dict[str, Protocol]:
    """What is spoken at each door of the link."""
    found: dict[str, Protocol] = {"pulsar": pulsar, "kafka": kafka.listener("kafka")}
    if contexts:
        found["pulsar_tls"] = _over_tls(pulsar, contexts["pulsar_tls"])
        found["kafka_tls"] = _over_tls(kafka.listener("kafka_tls"), contexts["kafka_tls"])
    return found


def _named(doors: dict[str, socket.socket], name: str) -> list[socket.socket]:
    return [doors[name]] if name in doors else []


def _room(settings: Settings) -> tuple[int, int]:
    """Bytes of the disk with the data, and how many of them are free."""
    try:
        usage = shutil.disk_usage(settings.storage.data_dir)
    except OSError:  # tools are told that it is not known
        return -1, -1
    return usage.total, usage.free


def _trouble(store: EmbeddedStore) -> str | None:
    """Why writes are refused, if they are."""
    return None if store.writable() else NO_WRITES


def _over_tls(protocol: Protocol, context: ssl.SSLContext) -> Protocol:
    """The same protocol, under TLS."""

    def secured(connection: Connection) -> tuple[Wire, Session]:
        wire, session = protocol(connection)
        tls = TlsWire(context, wire)
        connection.farewell = tls.farewell
        return tls, session

    return secured


@asynccontextmanager
async def _storage(
    settings: Settings, link: Link
) -> AsyncIterator[tuple[EmbeddedStore, EmbeddedMetadata]]:
    """Metadata, and the bookie whose ledgers it names. What cannot be opened is a sentence."""
    folder = Path(settings.storage.data_dir)
    async with trio.open_nursery() as nursery:

        def fail(reason: str) -> None:
            log.critical("storage failed, this server stops: %s", reason)
            nursery.start_soon(_raise, StorageFailed(reason))

        async with AsyncExitStack() as opened:
            bookie = shares.bookie_settings(settings)
            part = METADATA
            try:
                metadata = await opened.enter_async_context(
                    open_metadata(folder / METADATA, on_fatal=fail)
                )
                part = BOOKIE
                store = await opened.enter_async_context(
                    open_embedded(
                        folder / BOOKIE, metadata, bookie, on_fatal=fail, watch=link.watch
                    )
                )
            except Corrupted as error:
                raise OperatorError(damaged(folder, part, error)) from error
            except (BrokerError, OSError) as error:  # foreign, in use, not to be read or written
                raise OperatorError(f"cannot use the data in {folder}: {error}") from error
            yield store, metadata
        nursery.cancel_scope.cancel()


def damaged(folder: Path, part: str, error: Corrupted) -> str:
    """What is wrong, and the ways out."""
    return (
        f"cannot use the data in {folder}: {error}. Restore the directory "
        f"from a backup, or see with `magnetar {part} repair --data-dir {folder}` what can be had "
        "without one"
    )


async def _raise(error: Exception) -> None:
    raise error
