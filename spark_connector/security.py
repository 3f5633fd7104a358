"""Whom a query trusts, and how it shows who it is, by HTTP and on the Kafka port: TLS here, tokens
and passwords in `login.py`. Options have the names of Pulsar's clients.

A certificate that is not trusted is no failure that may pass: it is told at once.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from magnetar.spark_connector import login
from magnetar.spark_connector.errors import OptionError, RefusedError
from magnetar.spark_connector.login import NOBODY, Login
from magnetar.spark_connector.option_values import OptionValues

_OF_TLS: Final = (
    "tlsTrustCertsFilePath", "tlsAllowInsecureConnection", "tlsHostnameVerificationEnable",
    "tlsCertificateFilePath", "tlsKeyFilePath",
)  # fmt: skip
NAMES: Final = (*_OF_TLS, *login.NAMES)
ALIASES: Final = {f"pulsar.client.{name}".lower(): name.lower() for name in NAMES}
"""As StreamNative's connector has them."""
_MAY_PASS: Final = (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError)
"""The connection has ended."""
SHOWN: Final = '"tlsCertificateFilePath" is the one to show'
"""For who is asked for a certificate."""


class QuerySecurity(Struct, frozen=True):
    """Whom to trust, and who we are. Files are read where they are needed: by workers, too."""

    trusted: str = ""
    """CAs in PEM; empty for those of the machine."""
    insecure: bool = False
    """Whether any certificate will do."""
    checks_host: bool = True
    certificate: str = ""
    key: str = ""
    """Empty if it is in the same file."""
    login: Login = NOBODY
    """What is said on connections, with TLS or without."""

    def context(self) -> ssl.SSLContext:
        """For connections; `OptionError` if a file cannot be read."""
        try:
            made = ssl.create_default_context(cafile=self.trusted or None)
        except OSError as error:
            raise OptionError(f'"tlsTrustCertsFilePath": {self.trusted}: {error}') from error
        made.check_hostname = self.checks_host and not self.insecure
        if self.insecure:
            made.verify_mode = ssl.CERT_NONE
        if self.certificate:
            try:
                made.load_cert_chain(self.certificate, self.key or None)
            except OSError as error:
                where = f"{self.certificate} {self.key}".strip()
                raise OptionError(f'"tlsCertificateFilePath": {where}: {error}') from error
        return made


NOTHING_SAID: Final = QuerySecurity()
"""Nothing is said of it."""


def parse(values: OptionValues, urls: Sequence[str]) -> QuerySecurity:
    """What is said of TLS; `OptionError` says what is wrong with it."""
    schemes = {urlsplit(url).scheme for url in urls}
    given = [name for name in _OF_TLS if name.lower() in values]
    if len(schemes) > 1:
        raise OptionError('"service.url" has addresses with http, and with https')
    if given and "https" not in schemes:
        raise OptionError(f'"{given[0]}" is for "service.url" with https://')
    if values.text("tlskeyfilepath") and not values.text("tlscertificatefilepath"):
        raise OptionError('"tlsKeyFilePath" needs "tlsCertificateFilePath"')
    return QuerySecurity(
        trusted=values.text("tlstrustcertsfilepath"),
        insecure=values.flag("tlsallowinsecureconnection", default=False),
        checks_host=values.flag("tlshostnameverificationenable", default=True),
        certificate=values.text("tlscertificatefilepath"),
        key=values.text("tlskeyfilepath"),
        login=login.parse(values),
    )


def check_trust(error: Exception, where: str) -> None:
    """Raise `RefusedError` if one side does not trust the other, and would not the next time."""
    if isinstance(error, ssl.SSLCertVerificationError):
        raise RefusedError(
            f"{where}: its certificate is not trusted: {error.verify_message} "
            '("tlsTrustCertsFilePath" names a file with the certificates of CAs)'
        ) from error
    if isinstance(error, ssl.SSLError) and not isinstance(error, _MAY_PASS):
        hint = ""
        if "CERTIFICATE_REQUIRED" in str(error):
            hint = f" ({SHOWN})"
        raise RefusedError(f"{where}: no TLS with it: {error}{hint}") from error
