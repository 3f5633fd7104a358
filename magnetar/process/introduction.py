"""The first lines of the log: the versions, the configuration, and who may connect.

They precede the first line that is logged. A server that ends with an operator's error before it
logs anything prints only that sentence, and not these lines.
"""

import logging
import platform
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from magnetar import __version__
from magnetar.core import native
from magnetar.core.native import sources
from magnetar.settings import Settings
from magnetar.settings.security import Security

log = logging.getLogger(__name__)

EVERYBODY: Final = (
    "everybody who reaches %s can read, write and delete everything, since there is no "
    "authentication; restrict access with a firewall, or listen on 127.0.0.1"
)


class _BeforeTheFirst(logging.Filter):
    """Calls `introduce` before a handler's first line."""

    def __init__(self, introduce: Callable[[], None]) -> None:
        super().__init__()
        self._introduce = introduce
        self._introduced = False

    def filter(self, _record: logging.LogRecord) -> bool:
        if not self._introduced:
            self._introduced = True  # set it first: the lines of `introduce` pass here, too
            self._introduce()
        return True


def introduce_first(settings: Settings, config: str, stored_at: str = "") -> None:
    """Make every handler call `introduce` before it logs anything else."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(_BeforeTheFirst(partial(introduce, settings, config, stored_at)))


def introduce(settings: Settings, config: str, stored_at: str = "") -> None:
    """Log versions, configuration and where data is: in the data directory, or `stored_at`."""
    python, storage = platform.python_version(), settings.storage
    compiled = f"codec {native.described()}, hot path {sources.described()}"
    log.info("Magnetar %s, Python %s, %s", __version__, python, compiled)
    log.info("configuration: %s", Path(config).absolute() if config else "no file")
    if stored_at:
        log.info("data: %s", stored_at)
        return
    synced = "synced before they are acknowledged" if storage.sync else "not synced"
    log.info("data: %s, messages are %s", Path(storage.data_dir).absolute(), synced)


def say_who_may_connect(listeners: Mapping[str, str], security: Security) -> None:
    """Log whom the listeners serve."""
    if not listeners:
        return
    if security.authenticates:
        others = f"; others are {security.anonymous_role}" if security.anonymous_role else ""
        rights = "" if security.authorization else ", and may do everything"
        log.info("clients authenticate%s%s", rights, others)
        return
    hosts = {address.rpartition(":")[0].strip("[]") for address in listeners.values()}
    if all(ip_address(host.partition("%")[0]).is_loopback for host in hosts):
        log.info("only clients on this machine can connect, without authentication")
    else:
        log.warning(EVERYBODY, ", ".join(sorted(hosts)))
