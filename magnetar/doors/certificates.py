"""TLS contexts from the files that `[tls]` names, with a sentence for each error.

The files are looked at every second. When some have changed, and stayed so until the next look, all
contexts are made anew, for the connections to come; those that are open go on. A file that cannot
be used, such as a certificate whose key is not written yet, leaves the contexts as they are, and is
an error in the log. `trust` is told of the authorities in force.

Invariant: all doors have contexts of the same files.
"""

import logging
import re
import ssl
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from magnetar.core.link.front import TlsContext
from magnetar.doors.sockets import DoorPlan
from magnetar.operator_error import OperatorError
from magnetar.security.sources import LOOK_SECONDS, file_identity, warn_if_others_read
from magnetar.settings.server import ClientAuth, Tls

log = logging.getLogger(__name__)

VERIFY: Final[Mapping[ClientAuth, ssl.VerifyMode]] = {
    "": ssl.CERT_REQUIRED,
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""How each value verifies client certificates, if there is a `client_ca`."""
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)
Seen = tuple[tuple[int, int, int] | None, ...]
"""Which files were read, for each of the three."""


def _nobody(_authorities: Collection[bytes]) -> None:
    """Certificates prove nothing here."""


class ServerCertificates:
    """See the module's docstring."""

    def __init__(
        self,
        plans: Iterable[DoorPlan],
        tls: Tls,
        trust: Callable[[Collection[bytes]], None] = _nobody,
    ) -> None:
        """Raises `OperatorError`. Without a certificate there are no contexts."""
        self._tls = tls
        self._trust = trust
        self._verify = {
            plan.name: VERIFY[plan.client_auth(tls)]
            for plan in plans
            if plan.client_auth is not None and tls.certificate
        }
        self._seen = self._changing = self._files()
        self.contexts: Mapping[str, TlsContext] = {
            name: TlsContext(context) for name, context in self._made().items()
        }
        """By the name of the door."""
        if tls.certificate:
            held_in = "key" if tls.key else "certificate"
            warn_if_others_read(f"tls.{held_in}", Path(tls.key or tls.certificate))

    def look(self) -> None:
        """Make the contexts again if files have changed, and are written no more. What is wrong is
        logged once a change.
        """
        found = self._files()
        written, self._changing = found != self._changing, found
        if written or found == self._seen:
            return
        self._seen = found
        try:
            made = self._made()
        except OperatorError as error:
            log.error("%s: the certificates before stay in force", error)
            return
        for name, context in made.items():
            self.contexts[name].current = context
        log.info("certificates have changed: new connections get those of now")

    async def run(self) -> None:
        """Look until cancelled."""
        while self.contexts:
            await trio.sleep(LOOK_SECONDS)
            self.look()

    def _files(self) -> Seen:
        tls = self._tls
        seen: list[tuple[int, int, int] | None] = []
        for path in (tls.certificate, tls.key, tls.client_ca):
            seen.append(None)
            with suppress(OSError):
                seen[-1] = file_identity(Path(path)) if path else None
        return tuple(seen)

    def _made(self) -> dict[str, ssl.SSLContext]:
        """Contexts of the files of now. Doors differ only in how they verify certificates."""
        tls = self._tls
        authorities = _read(tls.client_ca) if tls.client_ca else ""
        made = {name: _context(tls, authorities, verify) for name, verify in self._verify.items()}
        if authorities:
            any_door = next(iter(made.values()))
            found = set(map(ssl.PEM_cert_to_DER_cert, _PEM.findall(authorities)))
            self._trust(found | set(any_door.get_ca_certs(binary_form=True)))
        return made


def _context(tls: Tls, authorities: str, verify: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # OpenSSL 1.1 lets a client ask for it for ever

    def no_passphrase() -> str:
        """Called by OpenSSL, which would otherwise prompt at the terminal."""
        raise OperatorError(f"{tls.key or tls.certificate} has a passphrase; remove it")

    try:
        context.load_cert_chain(tls.certificate, tls.key or None, no_passphrase)
    except ssl.SSLError as error:
        raise OperatorError(
            f"tls.certificate {tls.certificate} and its key do not match or are not PEM files: "
            f"{error.reason or error}"
        ) from None
    except OSError as error:
        names = " or ".join(filter(None, (tls.certificate, tls.key)))
        raise OperatorError(f"cannot read {names}: {error.strerror}") from None
    if tls.client_ca:
        _trust(context, tls.client_ca, authorities)
        context.verify_mode = verify
    return context


def _trust(context: ssl.SSLContext, client_ca: str, authorities: str) -> None:
    try:
        if not authorities:
            raise ValueError("it is empty")
        context.load_verify_locations(cadata=authorities)
    except (ssl.SSLError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise OperatorError(f"tls.client_ca {client_ca} holds no certificates: {why}") from None


def _read(client_ca: str) -> str:
    """Once, so that what verifies is what is told of. OpenSSL takes ASCII only, comments too."""
    try:
        return Path(client_ca).read_bytes().decode("ascii", "replace").replace("\ufffd", "?")
    except OSError as error:
        raise OperatorError(f"cannot read tls.client_ca {client_ca}: {error.strerror}") from None
