"""`magnetar bookie sanity` and `gc`: a test of one bookie, and a request to it."""

import json
from typing import TYPE_CHECKING

import click

from magnetar.cli.cluster_metadata import cluster_client, in_cluster, uri_option
from magnetar.cli.flags import whole_number
from magnetar.cli.printing import json_option, print_json, progress
from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from magnetar.bookie.cluster.bookies import Bookies
    from magnetar.bookie.cluster.cluster import BookKeeperCluster
    from magnetar.core.kernel.errors import BrokerError
    from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata

HTTP_SECONDS = 10
GARBAGE = "/api/v1/bookie/gc"
OK = 200


def _sanity(bookie_id: str, metadata_uri: str, entries: int, as_json: bool) -> None:
    from magnetar.bookie.client.quorum.sanity import ledgers_of_one, write_and_read
    from magnetar.bookie.cluster.ledger_id_generator import LedgerIdGenerator
    from magnetar.core.kernel.errors import BrokerError

    async def test(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> str | None:
        async with cluster_client(store, cluster) as (client, machine):
            ids = LedgerIdGenerator(store, cluster)
            ledgers = ledgers_of_one(client, ids, machine, bookie_id)
            with progress(entries, "writing", output=False) as bar:
                try:
                    await write_and_read(ledgers, entries, bar.update)
                except BrokerError as error:
                    return _why_not(client.bookies, bookie_id, error)
        return None

    if (reason := in_cluster(metadata_uri, test)) is not None:
        raise OperatorError(f"the bookie {bookie_id} {reason}")
    if as_json:
        print_json({"bookie": bookie_id, "entries": entries})
    else:
        click.echo(f"the bookie {bookie_id} has stored and returned {entries} entries")


def _why_not(bookies: "Bookies", bookie_id: str, error: "BrokerError") -> str:
    if bookie_id in bookies.read_only:
        return "is read-only, so it takes no test"
    if bookie_id not in bookies.writable:
        return "does not run: it is not registered"
    return f"does not answer, or is not well: {error}"


def _collect(bookie_id: str, metadata_uri: str, minor: bool, major: bool, as_json: bool) -> None:
    # Not `urllib`, which would ask a proxy of the environment for it.
    from http.client import HTTPConnection, HTTPException

    where = _http_address(bookie_id, metadata_uri)
    # What is not named runs as well, unless it is suspended.
    asked = {"forceMinor": minor, "forceMajor": major} if minor or major else {}
    connection = HTTPConnection(where, timeout=HTTP_SECONDS)
    try:
        connection.request("PUT", GARBAGE, json.dumps(asked))
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        raise OperatorError(f"the bookie {bookie_id}, at {where}: {error}") from error
    finally:
        connection.close()
    if status != OK:
        raise OperatorError(
            f"the bookie {bookie_id}, at {where}, answers with HTTP status {status}"
        )
    if as_json:
        print_json({"bookie": bookie_id, "http": where})
    else:
        click.echo(f"the bookie {bookie_id} collects garbage")


def _http_address(bookie_id: str, metadata_uri: str) -> str:
    """As the bookie publishes it in the metadata."""

    async def find(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> str:
        from magnetar.bookie.format import service_info
        from magnetar.bookie.format.service_info import READ_ONLY
        from magnetar.core.kernel.errors import NotFound

        for steps in (("available",), ("available", READ_ONLY)):
            found = await store.get(cluster.path(*steps, bookie_id))
            if found is None:
                continue
            for one in service_info.decode(bookie_id, found.value).endpoints:
                if one.protocol == service_info.HTTP:
                    host = f"[{one.host}]" if ":" in one.host else one.host
                    return f"{host}:{one.port}"
            raise NotFound(f"the bookie {bookie_id} has no HTTP: it runs without --http-port")
        raise NotFound(f"no bookie {bookie_id} is running")

    return in_cluster(metadata_uri, find)


def commands() -> list[click.Command]:
    def one() -> click.Argument:
        return click.Argument(["bookie_id"], metavar="BOOKIE")

    return [
        click.Command(
            "sanity",
            callback=_sanity,
            params=[
                one(),
                uri_option(),
                click.Option(["--entries"], type=whole_number(1), default=10,
                             show_default=True, metavar="N", help="How many are written."),
                json_option(),
            ],
            help="Test one bookie: write a ledger that is on it alone, close it, read it, and "
            "delete it.",
        ),
        click.Command(
            "gc",
            callback=_collect,
            params=[
                one(),
                uri_option(),
                click.Option(["--minor"], is_flag=True, help="With no compaction but a minor one."),
                click.Option(["--major"], is_flag=True, help="With no compaction but a major one."),
                json_option(),
            ],
            help="Have a running bookie collect garbage now, with both compactions, through its "
            "HTTP.",
        ),
    ]  # fmt: skip
