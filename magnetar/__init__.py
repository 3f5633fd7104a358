"""Magnetar: one light server that stock Pulsar, Kafka and MQTT clients connect to unmodified.

    import magnetar

    with magnetar.standalone() as server:
        client = pulsar.Client(server.pulsar_url)

Invariant: importing this package costs nothing; its contents are imported on first use.
"""

from typing import TYPE_CHECKING, Any

from magnetar.core.native import sources

if TYPE_CHECKING:
    from magnetar.child import Standalone, standalone

sources.prefer_right()

__version__ = "0.1.0"
__all__ = ["Standalone", "__version__", "standalone"]


def __getattr__(name: str) -> Any:
    if name in ("Standalone", "standalone"):
        from magnetar import child

        return getattr(child, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
