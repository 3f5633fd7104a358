"""Changes of the mapping rules while clients publish and subscribe.

    1  subscriptions made from now on read the logs of both the old rules and the new
    2  all sessions that exist get places in the new rules' logs (`new_logs.py`)
    3  the new rules are stored
    4  publishers use them
    5  if the old rules gave topics logs of their own, 2 again, for those that have come meanwhile
    6  subscriptions made from now on read the logs of the new rules only

What is stored stays where it is. Sessions go on reading the logs of the old rules: a connection to
its end, and a session that resumes as long as there are messages behind its place there. A crash
before 3 leaves the old rules; places too many do no harm. After that, a start goes on with 5.

An edited configuration takes the same steps at the next start.

Invariant: a message is stored in a log only after every session whose subscription matches it reads
that log.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import trio
from msgspec.structs import replace

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.wire.mqtt.clients.new_logs import NewLogs
from magnetar.wire.mqtt.delivery.logs import MqttLogs
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.storage.stored_rules import RulesRecord, StoredRules

log = logging.getLogger(__name__)


class RuleChanges:
    """See the module's docstring."""

    def __init__(
        self,
        stored: StoredRules,
        logs: MqttLogs,
        new_logs: NewLogs,
        configured: Sequence[MappingRule],
    ) -> None:
        self.stored = stored
        self._logs = logs
        self._new_logs = new_logs
        self._configured = tuple(configured)
        self._changing = trio.Lock()

    async def open(self) -> None:
        """Use the stored rules; of those that are not, sessions learn first."""
        record, rules = await self.stored.load(), self._logs.rules
        former = tuple(map(TopicName.parse, record.funnels))
        in_force = self._configured if record.rules is None else record.rules
        self._logs.switch(rules.others(record.in_force, former))
        self._logs.end_change()
        if record.leaving is not None:
            self._logs.begin_change_from(rules.others(record.leaving, former))
            await self._settle()
        if in_force == record.in_force:
            return
        try:
            await self._change(record.rules, in_force)
        except BrokerError as error:
            log.warning("sessions may miss messages that changed rules move: %s", error)
            self._logs.switch(self._logs.rules.followed_by(in_force))
            self._logs.end_change()

    async def change(self, rules: Sequence[MappingRule] | None, version: int | None) -> None:
        """Set rules, or (None) go back to those of the configuration; `BadVersion` if the rules
        have another version than stated.
        """
        async with self._changing:
            self.stored.check_version(version)
            kept = None if rules is None else tuple(rules)
            in_force = self._configured if kept is None else kept
            for name in self._logs.rules.others(in_force).funnels:
                await self._logs.open_all(name)  # raises if it cannot be created
            await self._change(kept, in_force)

    async def _change(
        self, rules: tuple[MappingRule, ...] | None, in_force: tuple[MappingRule, ...]
    ) -> None:
        new = self._logs.rules.followed_by(in_force)
        self._logs.begin_change(new)
        try:
            await self._new_logs.read(whole=False)
            funnels = tuple(name.full for name in new.all_funnels)
            leaving = self._logs.rules.rules[:-1] if self._logs.rules.has_each else None
            changes = self.stored.record.changes + 1
            await self.stored.store(RulesRecord(changes, rules, in_force, funnels, leaving))
        except BaseException:
            self._logs.end_change()
            raise
        self._logs.switch(new)
        await self._settle()

    async def _settle(self) -> None:
        """Have sessions read logs of single topics that have come during the change."""
        record = self.stored.record
        try:
            if record.leaving is not None:
                await self._new_logs.read(whole=False)
                await self.stored.store(replace(record, leaving=None))
        except BrokerError as error:
            log.warning("sessions may miss messages of the former rules: %s", error)
        finally:
            self._logs.end_change()
