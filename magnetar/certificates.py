"""From the files that `[tls]` names to a TLS context, with a sentence for each thing amiss."""

import ssl

from magnetar.settings import Settings
from magnetar.trouble import OperatorError


def server_context(settings: Settings) -> ssl.SSLContext | None:
    """None without a certificate; with `tls.client_ca` clients must show one of theirs."""
    tls = settings.tls
    if not tls.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    def no_passphrase() -> str:
        """Asked for by OpenSSL, which would otherwise ask whoever sits at the terminal."""
        raise OperatorError(f"{tls.key or tls.certificate} is locked with a passphrase; unlock it")

    try:
        context.load_cert_chain(tls.certificate, tls.key or None, no_passphrase)
    except ssl.SSLError as error:
        raise OperatorError(
            f"tls.certificate {tls.certificate} and its key do not fit or are no PEM files: "
            f"{error.reason or error}"
        ) from None
    except OSError as error:
        names = " or ".join(filter(None, (tls.certificate, tls.key)))
        raise OperatorError(f"cannot read {names}: {error.strerror}") from None
    if tls.client_ca:
        _require_clients(context, tls.client_ca)
    return context


def _require_clients(context: ssl.SSLContext, client_ca: str) -> None:
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError as error:
        raise OperatorError(
            f"tls.client_ca {client_ca} holds no certificates: {error.reason or error}"
        ) from None
    except OSError as error:
        raise OperatorError(f"cannot read tls.client_ca {client_ca}: {error.strerror}") from None
    context.verify_mode = ssl.CERT_REQUIRED
