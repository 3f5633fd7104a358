"""`magnetar token`: keys, and the tokens that they sign."""

import base64
import json
import secrets
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

from magnetar.cli.printing import json_option
from magnetar.operator_error import OperatorError
from magnetar.security.sources import owner_only, read_data_url

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
RSA_BITS: Final = 2048
SECRET_BYTES: Final = 32
KEY: Final = "A file, or a data: URL."
TOKEN: Final = "The token; without it, standard input is read."


class Duration(click.ParamType[int]):
    """`30s`, `10m`, `12h`, `7d`, `1y`, as `pulsar tokens` takes them."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        number, unit = value[:-1], value[-1:]
        if unit not in UNITS or not number.isdecimal() or not int(number):
            self.fail(f"{value!r} is no duration such as 30s, 10m, 12h, 7d or 1y", param, ctx)
        return int(number) * UNITS[unit]


@click.group()
def token() -> None:
    """Make keys and tokens (JSON Web Tokens), and look at them."""


@token.command("create-key")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--pair", is_flag=True, help="An RSA key pair: FILE, and FILE.pub for the server.")
def create_key(file: Path, *, pair: bool) -> None:
    """Write a new key to FILE, which must not exist: a secret, or a private key."""
    public = file.with_name(f"{file.name}.pub")
    for path in (file, public) if pair else (file,):
        if path.exists():
            raise OperatorError(f"{path} exists: tokens signed with it would become invalid")
    if not pair:
        _write(file, secrets.token_bytes(SECRET_BYTES))
        click.echo(f"wrote the secret {file}: set security.token_secret_key to it")
        return
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(65537, RSA_BITS)
    _write(
        file,
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    described = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    public.write_bytes(described)
    click.echo(
        f"wrote the private key {file}, and {public}: set security.token_public_key to the latter"
    )


def _write(path: Path, data: bytes) -> None:
    try:
        owner_only(path, data)
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from None


@token.command()
@click.option("--secret-key", metavar="KEY", help=f"The secret to sign with. {KEY}")
@click.option("--private-key", metavar="KEY", help=f"The private key to sign with. {KEY}")
@click.option("--subject", required=True, metavar="ROLE", help="Whom the token names.")
@click.option("--expiry-time", type=Duration(), help="How long it is valid; without it, for ever.")
@click.option("--audience", help="For whom it is (`aud`).")
@click.option("--issuer", help="Who has made it (`iss`).")
def create(
    secret_key: str | None,
    private_key: str | None,
    subject: str,
    expiry_time: int | None,
    audience: str | None,
    issuer: str | None,
) -> None:
    """Print a new token."""
    import jwt

    key, algorithm = _signing_key(secret_key, private_key)
    now = int(time.time())
    claims: dict[str, Any] = {"sub": subject, "aud": audience, "iss": issuer}
    if expiry_time is not None:
        claims |= {"iat": now, "exp": now + expiry_time}
    try:
        made = jwt.encode({k: v for k, v in claims.items() if v is not None}, key, algorithm)
    except jwt.InvalidKeyError as error:
        raise OperatorError(f"that key signs no token: {error}") from error
    click.echo(made)


def _signing_key(secret: str | None, private: str | None) -> tuple[Any, str]:
    if (secret is None) is (private is None):
        raise OperatorError("name one key to sign with: --secret-key or --private-key")
    if secret is not None:
        raw = _read(secret)
        if len(raw) < SECRET_BYTES:
            raise OperatorError(f"a secret has {SECRET_BYTES} bytes or more, this one {len(raw)}")
        return raw, "HS256"
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    from magnetar.core.security.token_keys import CURVES

    raw = _read(private or "")
    try:
        load = (
            serialization.load_pem_private_key
            if raw.lstrip().startswith(b"-----")
            else serialization.load_der_private_key
        )
        key = load(raw, None)
    except (ValueError, TypeError):
        raise OperatorError("it is no private key in PEM or DER without a passphrase") from None
    if isinstance(key, rsa.RSAPrivateKey):
        return key, "RS256"
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in CURVES:
        return key, CURVES[key.curve.name]
    raise OperatorError("tokens are signed with keys of RSA or EC")


def _read(where: str) -> bytes:
    try:
        if where.startswith("data:"):
            return read_data_url(where)
        return Path(where.removeprefix("file://")).read_bytes()
    except OSError as error:
        raise OperatorError(f"cannot read {where}: {error.strerror}") from None
    except ValueError as error:
        raise OperatorError(f"the data: URL: {error}") from None


@token.command()
@click.option("--secret-key", metavar="KEY", help=f"The secret that it is signed with. {KEY}")
@click.option("--public-key", metavar="KEY", help=f"The public key of its signer. {KEY}")
@click.option("--audience", default="", help="For whom it must be.")
@click.option("--issuer", default="", help="Who must have made it.")
@click.argument("text", metavar="[TOKEN]", required=False)
def validate(
    secret_key: str | None, public_key: str | None, audience: str, issuer: str, text: str | None
) -> None:
    """Say whom a token names, or why a server would refuse it (exit code 1).

    TOKEN is in the list of processes while this runs; without it, standard input is read.
    """
    from magnetar.core.kernel.errors import Unauthenticated
    from magnetar.core.security import token_keys
    from magnetar.core.security.tokens import TokenClaims, TokenVerifier

    if (secret_key is None) is (public_key is None):
        raise OperatorError("name one key to check with: --secret-key or --public-key")
    verifier = TokenVerifier(TokenClaims(issuer=issuer, audience=audience))
    try:
        if secret_key is not None:
            verifier.keys = [token_keys.secret_key(_read(secret_key))]
        else:
            verifier.keys = [token_keys.public_key(_read(public_key or ""))]
    except token_keys.UnusableKey as error:
        raise OperatorError(f"the key: {error}") from None
    try:
        found = verifier.verify(_given(text))
    except Unauthenticated as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    until = "for ever" if found.expires_at is None else f"until {_moment(found.expires_at)}"
    click.echo(f"{', '.join(found.roles)}, {until}")


@token.command()
@click.argument("text", metavar="[TOKEN]", required=False)
def show(text: str | None, *, as_json: bool) -> None:
    """Print what a token says, without a look at its signature."""
    parts = _given(text).decode("latin-1").split(".")
    try:
        header, payload = (json.loads(_unpadded(part)) for part in parts[:2])
    except ValueError:
        raise OperatorError("it is no token") from None
    if as_json:
        click.echo(json.dumps({"header": header, "payload": payload}))
        return
    for name, value in (*header.items(), *payload.items()):
        moment = f"  ({_moment(value)})" if name in ("exp", "iat", "nbf") else ""
        click.echo(f"{name}: {value}{moment}")


show.params.append(json_option())


def _unpadded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _given(text: str | None) -> bytes:
    return (text if text is not None else sys.stdin.read()).strip().encode()


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
