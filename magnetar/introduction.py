"""The lines of the log by which a server introduces itself: what runs, with what, and for whom.

They come when all that an operator can have got wrong has been looked at: until then, what is wrong
is the one sentence that is said.
"""

import logging
import platform
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from core import native
from magnetar import __version__
from magnetar.settings import Settings

log = logging.getLogger(__name__)

EVERYBODY: Final = (
    "everybody who reaches %s may read, write and delete everything: there is no authentication; "
    "let a firewall decide who does, or listen on 127.0.0.1"
)


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
