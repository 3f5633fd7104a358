"""The judge's rules: loaded at the start, and again when they change.

    tenants         their administrators            /admin/policies/{tenant}
    namespaces      their permissions               /admin/policies/{tenant}/{namespace}
    ACLs            Kafka's                         /kafka-acl, /kafka-acl-extended

Invariant: after `settled` the judge knows every rule that was stored before the call.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from magnetar.core.broker.catalog import TENANTS, Catalog
from magnetar.core.kernel.errors import BrokerError, NotFound
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.security.access import Access
from magnetar.core.security.acl_store import ROOTS, load_acls
from magnetar.core.security.judge import Judge
from magnetar.core.security.permissions import NamespaceRights

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
PREFIX_MODE: Final = "Prefix"
NOTHING: Final = NamespaceRights()


class SecurityRules:
    """See the module's docstring."""

    def __init__(self, access: Access, catalog: Catalog, metadata: MetadataStore) -> None:
        self._access = access
        self._catalog = catalog
        self._metadata = metadata
        self._stale: dict[str, None] = {TENANTS: None, ROOTS[0]: None}
        """Paths that have changed."""
        self._changed = trio.Event()
        self._lock = trio.Lock()

    async def open(self) -> None:
        """Load all rules, and watch them; nothing without a judge."""
        if self._access.judge is None:
            self._stale = {}
            return
        for root in (TENANTS, *ROOTS):
            self._metadata.watch(root, self._note)
        await self.settled()

    async def run(self) -> None:
        """Load what has changed until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            try:
                await self.settled()
            except BrokerError as error:
                log.warning("changed rights are not in force, storage is asked again: %s", error)
                await trio.sleep(RETRY_SECONDS)
                self._changed.set()

    def _note(self, path: str) -> None:
        self._stale[path] = None
        self._changed.set()

    async def settled(self) -> None:
        """Return when the judge knows what is stored."""
        judge = self._access.judge
        if judge is None:
            return
        async with self._lock:
            changed = False
            while self._stale:
                path = next(iter(self._stale))
                del self._stale[path]
                try:
                    await self._load(judge, path)
                except BaseException:
                    self._stale[path] = None  # it is still to be loaded
                    raise
                changed = True
            if changed:
                self._access.rights_changed()

    async def _load(self, judge: Judge, path: str) -> None:
        if not path.startswith(TENANTS):
            for root in ROOTS:
                for stale in [each for each in self._stale if each.startswith(root)]:
                    del self._stale[stale]
            judge.acls = await load_acls(self._metadata)
            return
        parts = path.removeprefix(TENANTS).strip("/").split("/")
        if parts == [""]:
            for tenant in await self._catalog.tenants():
                await self._load_tenant(judge, tenant, whole=True)
        elif len(parts) == 1:
            await self._load_tenant(judge, parts[0])
        elif len(parts) == 2:
            await self._load_namespace(judge, "/".join(parts))

    async def _load_tenant(self, judge: Judge, tenant: str, *, whole: bool = False) -> None:
        admins = judge.permissions.admins
        try:
            found = (await self._catalog.get_tenant(tenant)).admin_roles
            namespaces = await self._catalog.namespaces(tenant) if whole else []
        except NotFound:
            found, namespaces = [], []
        if found:
            admins[tenant] = frozenset(found)
        else:
            admins.pop(tenant, None)
        for namespace in namespaces:
            await self._load_namespace(judge, namespace)

    async def _load_namespace(self, judge: Judge, name: str) -> None:
        known = judge.permissions.namespaces
        try:
            policies = await self._catalog.policies(NamespaceName.parse(name))
        except NotFound:
            known.pop(name, None)
            return
        prefixed = policies.subscription_auth_mode == PREFIX_MODE
        rights = NamespaceRights(policies.auth_policies, prefixed)
        if rights == NOTHING:
            known.pop(name, None)
        else:
            known[name] = rights
