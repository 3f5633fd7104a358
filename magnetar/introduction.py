"""The lines of the log by which a server introduces itself: what runs, with what, and for whom.

They come before whatever is logged first. A server that has nothing to say but what its operator
got wrong says that one sentence, which is no line of the log, and does not introduce itself.
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
from magnetar.settings import Settings

log = logging.getLogger(__name__)

EVERYBODY: Final = (
    "everybody who reaches %s may read, write and delete everything: there is no authentication; "
    "let a firewall decide who does, or listen on 127.0.0.1"
)


class _BeforeTheFirst(logging.Filter):
    """Has something said before a handler's first line."""

    def __init__(self, introduce: Callable[[], None]) -> None:
        super().__init__()
        self._introduce = introduce
        self._introduced = False

    def filter(self, _record: logging.LogRecord) -> bool:
        if not self._introduced:
            self._introduced = True  # first of all: what is said comes through here, too
            self._introduce()
        return True


def introduce_first(settings: Settings, config: str) -> None:
    """Have `introduce` called before anything else is logged."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(_BeforeTheFirst(partial(introduce, settings, config)))


def introduce(settings: Settings, config: str) -> None:
    """What runs here, and with what: `config` is the file that settings were read from."""
    python, storage = platform.python_version(), settings.storage
    log.info("Magnetar %s, Python %s, codec %s", __version__, python, native.described())
    log.info("configuration: %s", Path(config).absolute() if config else "no file")
    synced = "synced before they are acknowledged" if storage.sync else "not synced"
    log.info("data: %s, messages are %s", Path(storage.data_dir).absolute(), synced)


def say_who_may_connect(listeners: Mapping[str, str]) -> None:
    hosts = {address.rpartition(":")[0].strip("[]") for address in listeners.values()}
    if all(ip_address(host.partition("%")[0]).is_loopback for host in hosts):
        log.info("only this machine may connect, and everybody on it")
    else:
        log.warning(EVERYBODY, ", ".join(sorted(hosts)))
