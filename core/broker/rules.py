"""The judge's rules: loaded at the start, and again when they change.

    tenants         their administrators            /admin/policies/{tenant}
    namespaces      their permissions               /admin/policies/{tenant}/{namespace}
    ACLs            Kafka's                         /kafka-acl, /kafka-acl-extended

Invariant: after `settled` the judge knows every rule that was stored before the call.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.broker.catalog import TENANTS, Catalog
from magnetar.core.kernel.errors import NotFound
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.metadata.changed_paths import ChangedPaths
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.security.access import Access
from magnetar.core.security.acl_store import ROOTS, load_acls
from magnetar.core.security.judge import Judge
from magnetar.core.security.permissions import NamespaceRights

PREFIX_MODE: Final = "Prefix"
NOTHING: Final = NamespaceRights()


class SecurityRules:
    """See the module's docstring."""

    def __init__(self, access: Access, catalog: Catalog, metadata: MetadataStore) -> None:
        self._access = access
        self._catalog = catalog
        self._metadata = metadata
        roots = (TENANTS, ROOTS[0])  # all ACLs are loaded with the first
        self._paths = ChangedPaths("rights", self._load, access.rights_changed, roots)
        self.run = self._paths.run

    async def open(self) -> None:
        """Load all rules, and watch them; nothing without a judge."""
        if self._access.judge is not None:
            self._paths.follow(self._metadata, (TENANTS, *ROOTS))
            await self.settled()

    async def settled(self) -> None:
        """Return when the judge knows what is stored."""
        if self._access.judge is not None:
            await self._paths.settled()

    async def _load(self, path: str) -> bool:
        judge = self._access.judge
        assert judge is not None, "nothing is watched without one"
        if path.startswith(TENANTS):
            await self._load_permissions(judge, path)
        else:
            self._paths.forget(ROOTS)
            judge.acls = await load_acls(self._metadata)
        return True

    async def _load_permissions(self, judge: Judge, path: str) -> None:
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
