"""TLS contexts from the files that `[tls]` names, with a sentence for each error."""

import ssl
from collections.abc import Iterable, Mapping
from typing import Final

from magnetar.doors.sockets import DoorPlan
from magnetar.operator_error import OperatorError
from magnetar.settings.server import ClientAuth, Tls

VERIFY: Final[Mapping[ClientAuth, ssl.VerifyMode]] = {
    "": ssl.CERT_REQUIRED,
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""How each value verifies client certificates, if there is a `client_ca`."""


def server_contexts(plans: Iterable[DoorPlan], tls: Tls) -> dict[str, ssl.SSLContext]:
    """TLS contexts by the name of the door; none without a certificate. Doors differ only in how
    they verify client certificates.
    """
    if not tls.certificate:
        return {}
    return {
        plan.name: _context(tls, VERIFY[plan.client_auth(tls)])
        for plan in plans
        if plan.client_auth is not None
    }


def _context(tls: Tls, verify: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

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
        _trust(context, tls.client_ca)
        context.verify_mode = verify
    return context


def _trust(context: ssl.SSLContext, client_ca: str) -> None:
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError as error:
        raise OperatorError(
            f"tls.client_ca {client_ca} holds no certificates: {error.reason or error}"
        ) from None
    except OSError as error:
        raise OperatorError(f"cannot read tls.client_ca {client_ca}: {error.strerror}") from None
