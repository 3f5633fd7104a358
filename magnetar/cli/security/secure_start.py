"""`magnetar config init` and `magnetar config issue`: a server for a team, and whom it lets in.

Everything is made in one folder, which must not hold anything yet: an authority and what it has
signed (`security/authority.py`), the key of tokens and a token, `magnetar.toml`, and the
configuration of Pulsar's and Kafka's tools. The text that is printed names commands that work as
they are (`interop_tests/security/test_secure_start.py` runs them).
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from magnetar.cli.flags import whole_number
from magnetar.core.security.identity import is_name
from magnetar.operator_error import OperatorError
from magnetar.security.sources import owner_only

if TYPE_CHECKING:
    from magnetar.security.authority import LocalAuthority

LOCAL: Final = ("localhost", "127.0.0.1", "::1")
"""The server's certificate is also for these."""
SERVER: Final = "server"
RESERVED: Final = ("ca", SERVER, "token")
SECRET_BYTES: Final = 32
DAYS: Final = 365
DAY_SECONDS: Final = 86_400

TOML: Final = """\
# Made by `magnetar config init --secure`. Every port asks for TLS; the plain ones are closed.
# Clients show a certificate that ca.pem has signed, or a token (docs/security.md).
# {{folder}} is where this file is: it can be moved with all that stands beside it.

[listen]
host = "{listen}"
advertised_host = "{host}"
http_allowed_hosts = {others}
pulsar_port = -1
kafka_port = -1
mqtt_port = -1
mqtt_ws_port = -1
http_port = -1
pulsar_tls_port = 6651
kafka_tls_port = 9093
mqtt_tls_port = 8883
mqtt_wss_port = 8084
https_port = 8443

[tls]
certificate = "{{folder}}/server.pem"
key = "{{folder}}/server.key"
client_ca = "{{folder}}/ca.pem"
pulsar_client_auth = "requested"
kafka_client_auth = "requested"
mqtt_client_auth = "requested"
https_client_auth = "requested"

[security]
client_certificates = true
token_secret_key = "{{folder}}/token.key"
superusers = ["{admin}"]
audit_log = "{{folder}}/audit.log"

[storage]
data_dir = "{{folder}}/data"
"""
PULSAR: Final = """\
webServiceUrl=https://{host}:8443/
brokerServiceUrl=pulsar+ssl://{host}:6651/
useTls=true
tlsEnableHostnameVerification=true
tlsTrustCertsFilePath={folder}/ca.pem
authPlugin=org.apache.pulsar.client.impl.auth.AuthenticationTls
authParams=tlsCertFile:{folder}/{admin}.pem,tlsKeyFile:{folder}/{admin}.key
"""
KAFKA: Final = """\
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="{admin}" password="token:{token}";
"""
NEXT: Final = """\
{folder} has all that a server needs. Start it:

  magnetar standalone --config {quoted}/magnetar.toml

{admin} may do everything, by certificate or by token:

  curl --cacert {quoted}/ca.pem --cert {quoted}/{admin}.pem --key {quoted}/{admin}.key \\
    https://{host}:8443/admin/v2/tenants
  curl --cacert {quoted}/ca.pem -H "Authorization: Bearer $(cat {quoted}/{admin}.token)" \\
    https://{host}:8443/admin/v2/tenants
  pulsar-admin with PULSAR_CLIENT_CONF={quoted}/pulsar.conf, Kafka's tools with
    --bootstrap-server {host}:9093 --command-config {quoted}/kafka.properties

Let alice in: a certificate, and a right. She connects with it and with ca.pem.

  magnetar config issue {quoted} alice
  curl --cacert {quoted}/ca.pem --cert {quoted}/{admin}.pem --key {quoted}/{admin}.key \\
    -H 'content-type: application/json' -d '["produce", "consume"]' \\
    https://{host}:8443/admin/v2/namespaces/public/default/permissions/alice
  mosquitto_pub -h {host} -p 8883 --cafile {quoted}/ca.pem \\
    --cert {quoted}/alice.pem --key {quoted}/alice.key -q 1 -t orders -m hello

Certificates and the token are valid for {days} days. The server reads new ones by itself:

  magnetar config issue {quoted} server --host {hosts}

Keep ca.key where the server is not: whoever has it can be anybody.
"""


@click.command("init")
@click.option("--secure", is_flag=True, required=True, help="With TLS and authentication.")
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME",
    help="A host name or address that clients use, repeatable; the first is told to clients. "
    "Without one only this machine can connect.",
)  # fmt: skip
@click.option("--admin", default="admin", show_default=True, help="The superuser.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def init(directory: Path, hosts: tuple[str, ...], admin: str, *, secure: bool) -> None:
    """Make DIR: an authority, certificates for the server and for its superuser, a key for tokens
    and a token, and a magnetar.toml that works. DIR must be empty, or not there.
    """
    del secure  # the only way so far
    from magnetar.security.authority import check_hosts, make_authority

    _check_name(admin)
    check_hosts(hosts)
    folder = _empty(directory)
    authority = make_authority(folder, f"Magnetar {hosts[0] if hosts else 'localhost'}"[:64])
    authority.issue_server(SERVER, (*hosts, *LOCAL), DAYS)
    authority.issue_client(admin, DAYS)
    token = _token(folder, admin)
    words = {
        "folder": str(folder),
        "quoted": shlex.quote(str(folder)),
        "listen": "0.0.0.0" if hosts else "127.0.0.1",
        "host": hosts[0] if hosts else "localhost",
        "hosts": " --host ".join(hosts or LOCAL[:1]),
        "others": "[" + ", ".join([f'"{host}"' for host in hosts[1:]]) + "]",
        "admin": admin,
        "token": token,
        "days": DAYS,
    }
    for name, text in (
        ("magnetar.toml", TOML),
        ("pulsar.conf", PULSAR),
        ("kafka.properties", KAFKA),
    ):
        owner_only(folder / name, text.format(**words).encode())
    click.echo(NEXT.format(**words), nl=False)


@click.command("issue")
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME",
    help="A host name or address of a server, repeatable: the certificate is for a server.",
)  # fmt: skip
@click.option("--days", type=whole_number(1, 3650), default=DAYS, show_default=True,
              help="How long it is valid.")  # fmt: skip
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("name")
def issue(directory: Path, name: str, hosts: tuple[str, ...], days: int) -> None:
    """Write NAME.pem and NAME.key to DIR, signed by its authority: a client's, or a server's.

    Those that are there are replaced, as renewing asks for; certificates before stay valid.
    """
    from magnetar.security.authority import check_hosts, open_authority

    _check_name(name, server=bool(hosts))
    check_hosts(hosts)
    authority: LocalAuthority = open_authority(directory)
    if hosts:
        authority.issue_server(name, (*hosts, *LOCAL), days)
    else:
        authority.issue_client(name, days)
    kind = "a server" if hosts else f"the role {name}"
    click.echo(f"wrote {directory / name}.pem and .key, for {kind}, valid for {days} days")


def _check_name(name: str, *, server: bool = False) -> None:
    """It becomes a role, and the names of files."""
    reserved = [each for each in RESERVED if not (server and each == SERVER)]
    if not is_name(name) or set('/\\"{}') & set(name) or name.startswith((".", "-")):
        raise OperatorError(f"{name!r} cannot be the name of a role and of a file")
    if name in reserved:
        raise OperatorError(f"{name} is the name of another file; a server needs --host")


def _empty(directory: Path) -> Path:
    """The folder, absolute, made if it is not there."""
    folder = directory.absolute()
    if set('"\\\n') & set(str(folder)):
        raise OperatorError(f"{folder}: choose a path without quotes and backslashes")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found: Sequence[Path] = list(folder.iterdir())
        folder.chmod(0o700)
    except OSError as error:
        raise OperatorError(f"cannot make {folder}: {error.strerror}") from None
    if found:
        raise OperatorError(f"{folder} holds something already ({found[0].name}): nothing is made")
    return folder


def _token(folder: Path, admin: str) -> str:
    import jwt

    key, now = secrets.token_bytes(SECRET_BYTES), int(time.time())
    claims = {"sub": admin, "iat": now, "exp": now + DAYS * DAY_SECONDS}
    token = jwt.encode(claims, key, "HS256")
    owner_only(folder / "token.key", key)
    owner_only(folder / f"{admin}.token", token.encode())
    return token
