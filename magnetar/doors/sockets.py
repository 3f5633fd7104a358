"""The listening sockets, opened before anything else, so that a busy port is reported at once.

Invariant: either all doors are open or none is.
"""

import errno
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Final, NamedTuple

from magnetar.core.link.front import Door, TlsContext
from magnetar.operator_error import OperatorError
from magnetar.settings import Settings
from magnetar.settings.server import ClientAuth, Listen, Tls
from magnetar.wire.http.guard import HostNames

LISTEN_BACKLOG: Final = 1024
BEYOND_LOOPBACK: Final = (
    "other machines can reach {}, and nobody is asked who they are: {}say "
    "security.anonymous_beyond_loopback = true to let everybody in"
)
SET_UP: Final = "set up authentication (docs/security.md), or "
"""The other way out, of processes that can ask; a recovery cannot."""


class DoorPlan(NamedTuple):
    """A door to open, and the settings that it depends on."""

    name: str
    port: Callable[[Listen], int]
    client_auth: Callable[[Tls], ClientAuth] | None = None
    """Set for a TLS door, which is opened only if there is a certificate."""


def open_doors(
    plans: Iterable[DoorPlan],
    settings: Settings,
    contexts: Mapping[str, TlsContext],
    *,
    authenticates: bool | None = None,
) -> dict[str, Door]:
    """Bound, listening, non-blocking sockets by name: plain doors, and TLS doors with a context.
    Beyond loopback they are for those who authenticate, if settings do not say otherwise; None: in
    this process nobody can.
    """
    listen = settings.listen
    for_anybody = not authenticates and not settings.security.anonymous_beyond_loopback
    doors = {}
    with ExitStack() as opened:
        for plan in sorted(plans, key=_for_tls):
            if _for_tls(plan) and plan.name not in contexts:
                continue
            sock = opened.enter_context(_open(plan.name, listen.host, plan.port(listen)))
            if for_anybody and not on_loopback(sock):
                way_out = SET_UP if authenticates is not None else ""
                raise OperatorError(BEYOND_LOOPBACK.format(listen.host, way_out))
            doors[plan.name] = Door(plan.name, sock, contexts.get(plan.name))
        opened.pop_all()
    return doors


def _for_tls(plan: DoorPlan) -> bool:
    return plan.client_auth is not None


def address(sock: socket.socket) -> str:
    """`127.0.0.1:6650` or `[::1]:6650`."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def on_loopback(sock: socket.socket) -> bool:
    """Whether only this machine can reach the socket."""
    return ip_address(sock.getsockname()[0].partition("%")[0]).is_loopback


def host_names(listen: Listen, door: socket.socket) -> HostNames:
    """The host names that HTTP requests may use. Beyond loopback they include any name without a
    dot, because a container or pod does not know the name that its network gives it.
    """
    own = (listen.host, listen.advertised_host, socket.gethostname())
    names = (*filter(None, own), *listen.http_allowed_hosts)
    return HostNames(names, single_labels=not on_loopback(door))


def _open(name: str, host: str, port: int) -> socket.socket:
    family, where = _resolve(host, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # a server that restarts at once must get its port although old connections linger
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind(where)
        sock.listen(LISTEN_BACKLOG)
    except OSError as error:
        sock.close()
        raise OperatorError(_sentence(name, host, port, error)) from None
    return sock


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    except (socket.gaierror, UnicodeError):
        raise OperatorError(f"listen.host: {host!r} is not an address of this machine") from None
    # `localhost` may be both; clients that know only IPv4 outnumber those that know only IPv6
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, where = found[0]
    return family, where  # type: ignore[return-value]  # an address of either family begins so


def _sentence(name: str, host: str, port: int, error: OSError) -> str:
    setting = "--port" if name == "bookie" else f"--{name}_port".replace("_", "-")
    if "@" in name:
        setting = "mqtt.mount_points"
    failed = f"cannot listen on {host} port {port} for {name}"
    if error.errno == errno.EADDRINUSE:
        return f"{failed}: the port is in use by another program; choose another with {setting}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{failed}: this machine does not have that address"
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"{failed}: not permitted; ports below 1024 need a privilege, choose one with {setting}"
        )
    return f"{failed}: {error.strerror}"
