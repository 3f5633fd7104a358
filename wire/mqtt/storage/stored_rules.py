"""The mapping rules of a namespace in the metadata store: those set over REST, and their history.

    never changed   there is no record; the rules are those of the configuration
    set             the record has rules, which replace those of the configuration
    reset           the record has none: the configuration's count again

The record also has the rules that were in force last, so that a start notices an edited
configuration; and all topics that a rule has ever named, because keys in them are MQTT topics.

Every write states the version that it replaces. There is one server for a namespace; should another
one have written, this one refuses (`BadVersion`), and sees it at its next start.
"""

from __future__ import annotations

from typing import Final

import msgspec
import trio
from msgspec import Struct

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, Corrupted
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.wire.mqtt.mapping.rules import MappingRule

PATH: Final = "/magnetar/mqtt-rules"


class RulesRecord(Struct, frozen=True):
    """See the module's docstring."""

    changes: int = 0
    """The number of changes."""
    rules: tuple[MappingRule, ...] | None = None
    in_force: tuple[MappingRule, ...] = ()
    funnels: tuple[str, ...] = ()
    """Full names of the topics that rules have named."""
    leaving: tuple[MappingRule, ...] | None = None
    """The former rules, while sessions are given places in the last logs of these."""


class StoredRules:
    """The record of one namespace. See the module's docstring."""

    def __init__(self, metadata: MetadataStore, namespace: NamespaceName) -> None:
        self.record = RulesRecord()
        self._metadata = metadata
        self._path = f"{PATH}/{namespace}"
        self._version = ABSENT

    async def load(self) -> RulesRecord:
        found = await self._metadata.get(self._path)
        if found is not None:
            try:
                self.record = msgspec.json.decode(found.value, type=RulesRecord)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise Corrupted(f"the record {self._path} cannot be read: {error}") from error
            self._version = found.version
        return self.record

    def check_version(self, version: int | None) -> None:
        """Raise `BadVersion` unless a change may replace the present rules."""
        if version is not None and version != self.record.changes:
            raise BadVersion(f"the rules have version {self.record.changes}, not {version}")

    async def store(self, record: RulesRecord) -> None:
        """Replace the record, durably. A cancelled call would lose the version."""
        try:
            with trio.CancelScope(shield=True):
                self._version = await self._metadata.put(
                    self._path, msgspec.json.encode(record), self._version
                )
        except AlreadyExists as error:
            raise BadVersion("another server has changed the rules") from error
        self.record = record
