"""The listening sockets, opened before anything else is built: a busy port is told at once.

Invariant: either all doors are open or none is.
"""

import errno
import socket
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Final

from magnetar.settings import Settings
from magnetar.settings.server import Listen
from magnetar.trouble import OperatorError
from magnetar.wire.http.server.guard import HostNames

LISTEN_BACKLOG: Final = 1024


def open_doors(settings: Settings) -> dict[str, socket.socket]:
    """Bound, listening, non-blocking sockets by name; TLS ones only if there is a certificate."""
    listen = settings.listen
    ports = {"pulsar": listen.pulsar_port, "kafka": listen.kafka_port, "http": listen.http_port}
    if settings.tls.certificate:
        ports["pulsar_tls"] = listen.pulsar_tls_port
        ports["kafka_tls"] = listen.kafka_tls_port
        ports["https"] = listen.https_port
    doors = {}
    with ExitStack() as opened:
        for name, port in ports.items():
            doors[name] = opened.enter_context(_open(name, listen.host, port))
        opened.pop_all()
    return doors


def address(sock: socket.socket) -> str:
    """`127.0.0.1:6650` or `[::1]:6650`."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def on_loopback(sock: socket.socket) -> bool:
    """Whether only this machine reaches it."""
    return ip_address(sock.getsockname()[0].partition("%")[0]).is_loopback


def host_names(listen: Listen, door: socket.socket) -> HostNames:
    """By what HTTP may be asked for. Beyond loopback that is any name without a dot as well: what
    the network of a container or of a pod calls it, it does not know itself.
    """
    own = (listen.host, listen.advertised_host, socket.gethostname())
    names = (*filter(None, own), *listen.http_allowed_hosts)
    return HostNames(names, single_labels=not on_loopback(door))


def _open(name: str, host: str, port: int) -> socket.socket:
    family, where = _resolve(host, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # a server that comes back at once must get its port although old connections linger
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
        raise OperatorError(f"listen.host: {host!r} is no address of this machine") from None
    # `localhost` may mean both; clients that know only the old one outnumber the others
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, where = found[0]
    return family, where  # type: ignore[return-value]  # an address of either family begins so


def _sentence(name: str, host: str, port: int, error: OSError) -> str:
    flag = f"--{name}_port".replace("_", "-")
    failed = f"cannot listen on {host} port {port} for {name}"
    if error.errno == errno.EADDRINUSE:
        return f"{failed}: the port is in use by another program; choose another with {flag}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{failed}: this machine does not have that address"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{failed}: not permitted; ports below 1024 need a privilege, choose another {flag}"
    return f"{failed}: {error.strerror}"
