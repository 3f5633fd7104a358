"""`magnetar bookie list`, `init-cluster`, `format-cluster`, `nuke-cluster`, `delete-cookie`.

They do what `listbookies`, `initnewcluster`, `metaformat`, `nukeexistingcluster` and
`cookie_delete` of Apache's shell do, in the same metadata.
"""

from typing import TYPE_CHECKING, Any

import click

from magnetar.cli.cluster_metadata import in_cluster, in_zookeeper, uri_option
from magnetar.cli.printing import json_option, print_json, sentences
from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from magnetar.bookie.cluster.cluster import BookKeeperCluster
    from magnetar.core.metadata.zookeeper.addresses import ZooKeeperAddress
    from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata


def _list(metadata_uri: str, mode: str, as_json: bool) -> None:
    found = [each for each in in_cluster(metadata_uri, _bookies) if mode in ("all", each["mode"])]
    if as_json:
        print_json(found)
        return
    for each in found:
        where = ", ".join(f"{one['protocol']} {one['address']}" for one in each["endpoints"])
        click.echo(f"{each['bookie']}  {each['mode']}  {where}")


async def _bookies(
    store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
) -> list[dict[str, Any]]:
    import trio

    from magnetar.bookie.cluster.bookies import Bookies

    bookies = Bookies(store, cluster)
    async with trio.open_nursery() as nursery:
        await nursery.start(bookies.run)
        nursery.cancel_scope.cancel()
    return [
        {
            "bookie": name,
            "mode": mode,
            "endpoints": [
                {"protocol": each.protocol, "address": each.address} for each in info.endpoints
            ],
        }
        for mode, infos in (("rw", bookies.writable), ("ro", bookies.read_only))
        for name, info in sorted(infos.items())
    ]


def _format(metadata_uri: str, force: bool, as_json: bool, new: bool = False) -> None:
    """Begin a cluster, where there must be none unless `force` says so."""
    from uuid import uuid4

    from magnetar.bookie.cluster import formatting
    from magnetar.bookie.format.layout import HIERARCHICAL, LAYOUTS

    async def begin(
        store: "ZooKeeperMetadata", address: "ZooKeeperAddress"
    ) -> "tuple[BookKeeperCluster, str]":
        layout = LAYOUTS.get(address.layout or "", HIERARCHICAL)
        asked = store, str(uuid4()), address.ledgers, layout
        if new:
            made = await formatting.initialize_cluster(*asked, chroot=address.root)
        else:
            made = await formatting.format_cluster(*asked, force=force, chroot=address.root)
        return made, address.root + made.root

    try:
        made, root = in_zookeeper(metadata_uri, begin)
    except OperatorError as error:
        if new or force or "already" not in str(error):
            raise
        raise OperatorError(f"{error}; --force does it all the same") from error
    if as_json:
        found = {"root": root, "layout": made.layout.name, "instance": made.instance_id}
        print_json(found)
    else:
        click.echo(f"{root} is a cluster with the instance id {made.instance_id}")


def _init(metadata_uri: str, as_json: bool) -> None:
    _format(metadata_uri, force=False, as_json=as_json, new=True)


def _nuke(metadata_uri: str, instance_id: str | None, force: bool, as_json: bool) -> None:
    from magnetar.bookie.cluster import formatting

    if (instance_id is None) is not force:
        raise OperatorError("give the cluster's --instance-id, or --force, and not both")

    async def nuke(store: "ZooKeeperMetadata", address: "ZooKeeperAddress") -> str:
        await formatting.nuke_cluster(store, address.ledgers, instance_id, chroot=address.root)
        await store.remove_writers()
        return address.root + address.ledgers

    root = in_zookeeper(metadata_uri, nuke)
    if as_json:
        print_json({"root": root})
    else:
        click.echo(f"there is no cluster at {root} any more")


def _delete_cookie(bookie_id: str, metadata_uri: str, force: bool, as_json: bool) -> None:
    if not force:
        raise OperatorError(
            f"nothing was changed; with --force the bookie {bookie_id} may begin anew with empty "
            "directories, and what only it had is lost"
        )
    with sentences():
        forget(metadata_uri, bookie_id)
    if as_json:
        print_json({"bookie": bookie_id})
    else:
        click.echo(f"the cluster has forgotten the bookie {bookie_id}")


def forget(metadata_uri: str, bookie_id: str) -> None:
    """Delete the cookie of a bookie that does not run; `NotFound` if it has none."""
    from magnetar.bookie.cluster.cookies import Cookies
    from magnetar.bookie.format.service_info import READ_ONLY
    from magnetar.core.kernel.errors import BrokerError, NotAllowed

    async def delete(
        store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
    ) -> BrokerError | None:
        for steps in (("available",), ("available", READ_ONLY)):
            if await store.get(cluster.path(*steps, bookie_id)) is not None:
                return NotAllowed(f"the bookie {bookie_id} is running")
        try:
            await Cookies(store, cluster).delete(bookie_id)
        except BrokerError as error:
            return error
        return None

    if (error := in_cluster(metadata_uri, delete)) is not None:
        raise error


def commands() -> list[click.Command]:
    force = click.Option(["--force"], is_flag=True, help="Also if all ledgers are lost by it.")
    mode = click.Option(
        ["--mode"],
        type=click.Choice(["all", "rw", "ro"]),
        default="all",
        show_default=True,
        help="Only those that take writes, or only read-only ones.",
    )
    instance = click.Option(["--instance-id"], metavar="UUID", help="Of the cluster to remove.")
    return [
        click.Command(
            "list",
            callback=_list,
            params=[uri_option(), mode, json_option()],
            help="List the bookies of a cluster that are running.",
        ),
        click.Command(
            "init-cluster",
            callback=_init,
            params=[uri_option(), json_option()],
            help="Begin a cluster where there is none.",
        ),
        click.Command(
            "format-cluster",
            callback=_format,
            params=[uri_option(), force, json_option()],
            help="Begin a cluster; with --force, drop the ledgers, their ids and the cookies of "
            "the one there, even while bookies run: they should be stopped and formatted first.",
        ),
        click.Command(
            "delete-cookie",
            callback=_delete_cookie,
            params=[
                click.Argument(["bookie_id"], metavar="BOOKIE"),
                uri_option(),
                click.Option(["--force"], is_flag=True, help="Without it nothing is changed."),
                json_option(),
            ],
            help="Make a cluster forget whose directories a stopped bookie has, as when its disks "
            "are lost: it may then begin anew with empty ones.",
        ),
        click.Command(
            "nuke-cluster",
            callback=_nuke,
            params=[uri_option(), instance, force, json_option()],
            help="Remove a cluster's metadata. Refused while bookies are running.",
        ),
    ]
