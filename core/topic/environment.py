"""What a topic and its subscriptions get from the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from magnetar.core.dispatch.selectors import Division
from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import Throttle
from magnetar.core.ledger.read.loaded_entries import LoadedEntries
from magnetar.core.ledger.storage import Storage
from magnetar.core.topic.subscription.delayed.memory import DelayedMemory
from magnetar.core.topic.subscription.held import HeldSubscriptions
from magnetar.core.topic.transaction_buffer import AbortedTotal

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic
    from magnetar.core.topic.subscription.subscription import PersistentSubscription


def _ignore(_topic: PersistentTopic) -> None:
    """For tests without a broker."""


class Environment(Struct, frozen=True):
    """One per broker."""

    storage: Storage
    clock: Clock
    spawn: Callable[..., None]
    """Starts a task that outlives its caller."""
    dirty: Callable[[PersistentSubscription], None]
    """Called by a subscription that has to dispatch at the end of this sweep."""
    lost: Callable[[PersistentTopic], None] = _ignore
    """Called by a topic that another owner has taken over; it is unloaded."""
    division: Division = Division()
    """How the keys of Key_Shared subscriptions are divided."""
    held: HeldSubscriptions = field(default_factory=HeldSubscriptions)
    aborted: AbortedTotal = field(default_factory=AbortedTotal)
    loaded: LoadedEntries = field(default_factory=LoadedEntries)
    publish_throttle: Throttle | None = None
    """The publish rate of all topics together; None without a limit."""
    delayed: DelayedMemory = field(default_factory=DelayedMemory)
