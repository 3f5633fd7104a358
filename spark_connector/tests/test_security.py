"""TLS: what is said of it, and what is no failure that may pass."""

import ssl

import pytest

from magnetar.spark_connector import security
from magnetar.spark_connector.errors import OptionError, RefusedError
from magnetar.spark_connector.option_values import OptionNames
from magnetar.spark_connector.security import QuerySecurity

HTTPS = ("https://a:8443",)


def parse(urls: tuple[str, ...] = HTTPS, **given: str) -> QuerySecurity:
    return security.parse(OptionNames(security.NAMES, security.ALIASES, ()).given(given), urls)


def test_the_machines_cas_are_trusted_unless_it_is_said() -> None:
    found = parse()
    assert found == QuerySecurity() == parse(("http://a:8080",))
    context = found.context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_all_that_can_be_said() -> None:
    found = parse(
        tlsTrustCertsFilePath="ca.pem",
        tlsHostnameVerificationEnable="false",
        tlsCertificateFilePath="me.pem",
        tlsKeyFilePath="me.key",
    )
    assert found == QuerySecurity("ca.pem", False, False, "me.pem", "me.key")
    context = parse(tlsAllowInsecureConnection="true").context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)
    context = parse(tlsHostnameVerificationEnable="false").context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


def test_the_names_of_streamnatives_connector() -> None:
    names = OptionNames(security.NAMES, security.ALIASES, ())
    given = names.given({"pulsar.client.tlsAllowInsecureConnection": "true"})
    assert security.parse(given, HTTPS).insecure


@pytest.mark.parametrize(
    ("urls", "given", "said"),
    [
        (("http://a:1",), {"tlsTrustCertsFilePath": "x"}, 'is for "service.url" with https://'),
        (("http://a:1", *HTTPS), {}, "addresses with http, and with https"),
        (HTTPS, {"tlsKeyFilePath": "x"}, 'needs "tlsCertificateFilePath"'),
        (HTTPS, {"tlsAllowInsecureConnection": "yes"}, "is false or true"),
    ],
)
def test_mistakes_are_told(urls, given, said) -> None:
    with pytest.raises(OptionError) as raised:
        parse(urls, **given)
    assert said in str(raised.value)


def test_files_that_cannot_be_read_are_named(tmp_path) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.touch()
    for path in (missing, empty):
        with pytest.raises(OptionError, match=f'"tlsTrustCertsFilePath": {path}'):
            QuerySecurity(str(path)).context()
        with pytest.raises(OptionError, match=f'"tlsCertificateFilePath": {path}'):
            QuerySecurity(certificate=str(path)).context()


def test_what_is_not_trusted_is_told_at_once() -> None:
    untrusted = ssl.SSLCertVerificationError()
    untrusted.verify_message = "unable to get local issuer certificate"
    with pytest.raises(RefusedError, match=r"a:1: its certificate is not trusted: unable to get"):
        security.check_trust(untrusted, "a:1")
    with pytest.raises(RefusedError, match="a:1: no TLS with it"):
        security.check_trust(ssl.SSLError(1, "wrong version number"), "a:1")
    asked = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] certificate required")
    with pytest.raises(RefusedError, match='"tlsCertificateFilePath" is the one to show'):
        security.check_trust(asked, "a:1")
    for passing in (ssl.SSLEOFError(), ConnectionResetError(), TimeoutError(), ValueError()):
        security.check_trust(passing, "a:1")
