"""`magnetar ledger list`, `metadata`, `read`, `delete`, `under-replicated`, for a cluster."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from magnetar.cli.cluster_metadata import in_cluster, shown_credentials, uri_option
from magnetar.cli.flags import whole_number
from magnetar.cli.printing import (
    FOUND_DAMAGE,
    json_option,
    print_json,
    print_warnings,
    progress,
    sentences,
)
from magnetar.core.kernel.errors import Corrupted, Unsupported
from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from magnetar.bookie.cluster.cluster import BookKeeperCluster
    from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
    from magnetar.bookie.reading.read_handle import ReadHandle
    from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata

DIGESTS = {"HMAC": "MAC"}
"""By their names in metadata: what clients' settings and `--digest-type` call them."""


@click.group()
def ledger() -> None:
    """Look at the ledgers of a cluster, on our bookies or on Apache's."""


def _list(metadata_uri: str, long: bool, as_json: bool) -> None:
    from magnetar.bookie.cluster.ledgers import ClusterLedgers

    async def find(
        store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
    ) -> dict[int, "LedgerMetadata | str | None"]:
        ledgers = ClusterLedgers(store, cluster)
        ids = await ledgers.ids()
        if not long:
            return dict.fromkeys(ids)
        found: dict[int, LedgerMetadata | str | None] = {}
        with progress(len(ids), "reading metadata", output=False) as bar:
            for ledger_id in ids:
                try:
                    found[ledger_id] = await ledgers.read(ledger_id)
                except (Corrupted, Unsupported) as error:
                    found[ledger_id] = str(error)
                bar.update(1)
        return found

    found = in_cluster(metadata_uri, find)
    all_of_them = [_listed(ledger_id, one) for ledger_id, one in found.items()]
    if as_json:
        print_json(all_of_them)
    else:
        for each in all_of_them:
            click.echo(_sentence(each) if long else each["ledger"])
    if any("error" in each for each in all_of_them):
        click.get_current_context().exit(FOUND_DAMAGE)


def _listed(ledger_id: int, found: "LedgerMetadata | str | None") -> dict[str, Any]:
    """What is known of a ledger: nothing, its metadata, or what is wrong with them."""
    if found is None:
        return {"ledger": ledger_id}
    if isinstance(found, str):
        return {"ledger": ledger_id, "error": found}
    return described(ledger_id, found)


def _metadata(ledger_id: int, metadata_uri: str, as_json: bool) -> None:
    from magnetar.bookie.cluster.ledgers import ClusterLedgers

    async def read(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> "LedgerMetadata":
        return await ClusterLedgers(store, cluster).read(ledger_id)

    found = described(ledger_id, in_cluster(metadata_uri, read))
    if as_json:
        print_json(found)
        return
    click.echo(_sentence(found))
    created = written_date(found["created_ms"])
    click.echo(
        f"ensemble {found['ensemble']}, write quorum {found['write_quorum']}, ack quorum "
        f"{found['ack_quorum']}, digest {found['digest']}, created {created}"
    )
    for segment in found["segments"]:
        click.echo(f"from entry {segment['first']} on: {', '.join(segment['bookies'])}")
    for key, value in found["properties"].items():
        click.echo(f"{key} = {value}")


def written_date(milliseconds: int) -> str:
    from datetime import UTC, datetime

    if not milliseconds:
        return "at an unknown time"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def described(ledger_id: int, metadata: "LedgerMetadata") -> dict[str, Any]:
    """What metadata say, but for the password."""
    from magnetar.bookie.format import ledger_metadata
    from magnetar.bookie.proto.storage_pb2 import LedgerMetadata

    digest = LedgerMetadata.DigestType.Name(metadata.digestType)
    return {
        "ledger": ledger_id,
        "state": LedgerMetadata.State.Name(metadata.state),
        "last_entry": metadata.lastEntryId,
        "length": metadata.length,
        "ensemble": metadata.ensembleSize,
        "write_quorum": metadata.quorumSize,
        "ack_quorum": ledger_metadata.ack_quorum(metadata),
        "digest": DIGESTS.get(digest, digest),
        "created_ms": metadata.ctime,
        "segments": [
            {"first": each.firstEntryId, "bookies": list(each.ensembleMember)}
            for each in metadata.segment
        ],
        "properties": {
            each.key: each.value.decode(errors="backslashreplace")
            for each in metadata.customMetadata
        },
    }


def _sentence(found: dict[str, Any]) -> str:
    if "error" in found:
        return str(found["error"])
    begin = f"ledger {found['ledger']}: {found['state']}"
    if found["state"] != "CLOSED":
        return begin
    return f"{begin}, last entry {found['last_entry']}, {found['length']} bytes"


def _read(
    ledger_id: int,
    metadata_uri: str,
    span: tuple[int, int | None],
    form: str,
    output: Path | None,
) -> None:
    from magnetar.bookie.reading.read_handle import open_ledger
    from magnetar.bookie.reading.zookeeper import ZooKeeperLedgers

    print_warnings()
    with (
        sentences(),
        ZooKeeperLedgers(metadata_uri, words=shown_credentials().first_words()) as source,
        open_ledger(ledger_id, source) as handle,
        _opened(output) as file,
    ):
        unread = _copy(handle, span, form, file)
    if unread:
        click.get_current_context().exit(FOUND_DAMAGE)


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[bytes]]:
    if output is None:
        yield sys.stdout.buffer
    else:
        try:
            file = output.open("wb")
        except OSError as error:
            raise OperatorError(f"cannot write to {output}: {error.strerror}") from None
        with file:
            yield file


def _copy(handle: "ReadHandle", span: tuple[int, int | None], form: str, file: IO[bytes]) -> int:
    """Write the entries; those that no bookie has intact are named, and counted."""
    from magnetar.bookie.reading.errors import UnreachableEntry, UnreadEntry

    first, last = span
    if last is None:
        last = handle.last_confirmed()
        if first > last and first:
            raise OperatorError(
                f"there is no entry {first}: the last one that is confirmed is {last}"
            )
    unread = 0
    with progress(max(last - first + 1, 0), "reading", file is sys.stdout.buffer) as bar:
        while first <= last:
            try:
                for entry_id, payload in handle.entries(first, last):
                    file.write(_formed(form, entry_id, payload))
                    first = entry_id + 1
                    bar.update(1)
            except UnreachableEntry:
                raise
            except UnreadEntry as error:
                unread += 1
                click.echo(f"magnetar: {error}", err=True)
                if form == "json":
                    file.write(_json({"entry": error.entry_id, "error": str(error)}))
                first = error.entry_id + 1
                bar.update(1)
    file.flush()
    return unread


def _formed(form: str, entry_id: int, payload: bytes) -> bytes:
    if form == "raw":
        return payload
    if form == "hex":
        return f"{entry_id} {payload.hex()}\n".encode()
    if form == "json":
        return _json({"entry": entry_id, "payload": payload})
    return f"{entry_id} {payload.decode(errors='backslashreplace')}\n".encode()


def _json(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value) + b"\n"


def _delete(ledger_id: int, metadata_uri: str, force: bool, as_json: bool) -> None:
    from magnetar.bookie.cluster.ledgers import ClusterLedgers

    if not force:
        raise OperatorError(f"nothing was changed; --force deletes ledger {ledger_id} for ever")

    async def delete(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> None:
        ledgers = ClusterLedgers(store, cluster)
        await ledgers.read(ledger_id)
        await ledgers.delete(ledger_id)

    in_cluster(metadata_uri, delete)
    if as_json:
        print_json({"ledger": ledger_id})
    else:
        click.echo(f"ledger {ledger_id} is deleted; bookies drop its entries when they collect")


def _under_replicated(metadata_uri: str, as_json: bool) -> None:
    from magnetar.bookie.cluster.under_replication import under_replicated

    found = in_cluster(metadata_uri, under_replicated)
    if as_json:
        print_json(found)
        return
    for each in found:
        click.echo(f"ledger {each.ledger_id}: missing on {', '.join(each.missing)}")


def _command(name: str, callback: Any, text: str, *params: click.Parameter) -> None:
    ledger.add_command(click.Command(name, callback=callback, params=[*params], help=text))


def _one() -> click.Argument:
    return click.Argument(["ledger_id"], type=whole_number(0), metavar="LEDGER")


def _read_command(first: int, last: int | None, as_json: bool, form: str, **options: Any) -> None:
    if last is not None and first > last:
        raise OperatorError(f"--first {first} is behind --last {last}")
    _read(span=(first, last), form="json" if as_json else form, **options)


_command(
    "list",
    _list,
    "List the ids of all ledgers of a cluster.",
    uri_option(),
    click.Option(["--long"], is_flag=True, help="With what their metadata say."),
    json_option(),
)
_command(
    "metadata",
    _metadata,
    "Print the metadata of one ledger: its state, its bookies, its properties.",
    _one(),
    uri_option(),
    json_option(),
)
_command(
    "read",
    _read_command,
    "Print the entries of one ledger, as far as they are confirmed; nothing is fenced or "
    "recovered. What no bookie has intact is named on standard error and passed over; then the "
    "exit code is 1.",
    _one(),
    uri_option(),
    click.Option(["--first"], type=whole_number(0), default=0, metavar="N",
                 help="The first entry."),
    click.Option(["--last"], type=whole_number(0), metavar="N",
                 help="The last entry; by default the last one confirmed."),
    click.Option(["--format", "form"], type=click.Choice(["text", "hex", "raw"]), default="text",
                 show_default=True, help="Of the payloads; raw ones are written as they are."),
    click.Option(["--output"], type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Write to a file."),
    json_option(),
)  # fmt: skip
_command(
    "under-replicated",
    _under_replicated,
    "List the ledgers that an auditor has found to lack replicas, and that wait for repair.",
    uri_option(),
    json_option(),
)
_command(
    "delete",
    _delete,
    "Delete the metadata of one ledger: bookies then drop its entries.",
    _one(),
    uri_option(),
    click.Option(["--force"], is_flag=True, help="Without it nothing is changed."),
    json_option(),
)
