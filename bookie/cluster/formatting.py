"""How a cluster begins and ends: what `bin/bookkeeper shell initnewcluster`, `metaformat` and
`nukeexistingcluster` do (`ZKRegistrationManager.java`, `AbstractZkLedgerManagerFactory.java` of
4.18).

Apache creates a new cluster in one transaction, which the port does not have. Here `INSTANCEID` is
created first: of two that begin a cluster one succeeds, and a bookie never finds a root without it.
`LAYOUT` is last, and a cluster without it is none (`cluster.find`): if this process dies between
the two, `format_cluster` with `force` makes the rest.
"""

from __future__ import annotations

from contextlib import suppress

from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.cluster import ROOT, BookKeeperCluster
from magnetar.bookie.format import layout as layouts
from magnetar.bookie.format.layout import HIERARCHICAL, Layout
from magnetar.bookie.format.service_info import READ_ONLY
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, BrokerError, NotAllowed, NotFound
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore


async def initialize_cluster(
    store: MetadataStore,
    instance_id: str,
    root: str = ROOT,
    layout: Layout = HIERARCHICAL,
    *,
    chroot: str = "",
) -> BookKeeperCluster:
    """Begin a cluster where there is none; `AlreadyExists` if there is anything.

    `instance_id` is a UUID that no other cluster has; `chroot` is where the store's paths begin,
    for messages.
    """
    if await _exists(store, root):
        raise AlreadyExists(await _there_already(store, root, chroot))
    return await _begin(store, BookKeeperCluster(root, layout, instance_id))


async def format_cluster(
    store: MetadataStore,
    instance_id: str,
    root: str = ROOT,
    layout: Layout = HIERARCHICAL,
    *,
    force: bool = False,
    chroot: str = "",
) -> BookKeeperCluster:
    """Begin a cluster, and drop all ledgers, counters and cookies of the one that is there.

    Without `force`, `AlreadyExists` if there is one, which names the bookies that run. With it they
    stay registered, and serve what they have, while the counter of ledger ids begins anew: new
    ledgers get ids under which they have entries, and fences, of former ones. The cookies on their
    disks are of the former instance: they do not start again before these are formatted too.
    """
    if await _exists(store, root) and not force:
        problem = f"there is something at {chroot}{root} already: formatting loses all ledgers"
        if running := await _running(store, root):
            problem += (
                f", and its bookies {', '.join(running)} are running: stop and format them, "
                "or new ledgers are mixed up with old ones"
            )
        raise AlreadyExists(problem)
    for name in await store.children(root):
        if _is_of_ledgers(name) or name in ("LAYOUT", "cookies", "INSTANCEID"):
            await _delete_tree(store, f"{root}/{name}")
    for part in ("ledgers", "locks"):
        await _delete_tree(store, f"{root}/underreplication/{part}")
    return await _begin(store, BookKeeperCluster(root, layout, instance_id))


async def nuke_cluster(
    store: MetadataStore, root: str, instance_id: str | None, *, chroot: str = ""
) -> None:
    """Remove a cluster with all that it knows. `instance_id` None stands for Apache's `-force`.

    Refused while bookies run, for another instance, and if there is a name that is no cluster's.
    """
    where = chroot + root
    instance = await store.get(f"{root}/INSTANCEID")
    if not await _exists(store, root):
        return
    if instance_id is not None and (
        instance is None or instance.value.decode(errors="replace") != instance_id
    ):
        raise NotAllowed(f"the cluster at {where} is not the instance {instance_id}")
    if running := await _running(store, root):
        raise NotAllowed(f"bookies of {where} are running: {', '.join(running)}")
    names = await store.children(root)
    foreign = [n for n in names if not (clusters.is_special(n) or _is_of_ledgers(n))]
    if foreign:
        raise NotAllowed(f"{where} has what no cluster has: {', '.join(foreign)}")
    for name in sorted(names, key=clusters.is_special):  # ledgers first, what tells of them last
        await _delete_tree(store, f"{root}/{name}")
    await _delete_tree(store, root)


async def _running(store: MetadataStore, root: str) -> list[str]:
    """The bookies of a cluster that are registered."""
    names = await store.children(f"{root}/available")
    names += await store.children(f"{root}/available/{READ_ONLY}")
    return [name for name in names if name != READ_ONLY]


def _is_of_ledgers(name: str) -> bool:
    """Whether a name at the root is of ledgers, in any layout, or of their counters."""
    counters = name in ("idgen", "idgen-long") or name.startswith("ID-")
    return counters or any(layout.belongs_to_ledgers(name) for layout in layouts.LAYOUTS.values())


async def _exists(store: MetadataStore, root: str) -> bool:
    return await store.get(root) is not None or bool(await store.children(root))


async def _there_already(store: MetadataStore, root: str, chroot: str) -> str:
    try:
        found = await clusters.find(store, root)
    except BrokerError:
        return f"there is something at {chroot}{root} already"
    instance = (
        f"with the instance id {found.instance_id}"
        if found.instance_id
        else "without an instance id"
    )
    return f"{chroot}{root} is a cluster already, {instance}"


async def _begin(store: MetadataStore, cluster: BookKeeperCluster) -> BookKeeperCluster:
    assert cluster.instance_id is not None
    await store.put(cluster.path("INSTANCEID"), cluster.instance_id.encode(), ABSENT)
    # Apache's begins without `cookies`, and some tools of its fail until the first bookie starts.
    for steps in ((), ("available",), ("available", READ_ONLY), ("cookies",)):
        with suppress(AlreadyExists):
            await store.put(cluster.path(*steps), b"", ABSENT)
    await store.put(cluster.path("LAYOUT"), cluster.layout.encode(), ABSENT)
    return cluster


async def _delete_tree(store: MetadataStore, path: str) -> None:
    """Delete a path and all below, as often as something comes back."""
    for name in await store.children(path):
        await _delete_tree(store, f"{path}/{name}")
    while (found := await store.get(path)) is not None:
        with suppress(BadVersion, NotFound):
            await store.delete(path, found.version)
