"""Subjects in the form that Java gives them: `interop_tests/security` asks Java itself."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from magnetar.core.security.certificates import distinguished_name
from magnetar.core.security.certificates.distinguished_name import common_name, parsed, rfc2253
from magnetar.core.security.certificates.tests.authority import name_of

CN, OU, ORGANIZATION = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
)
SERVICE = name_of(
    (NameOID.COUNTRY_NAME, "US"),
    (NameOID.STATE_OR_PROVINCE_NAME, "Unknown"),
    (NameOID.LOCALITY_NAME, "Unknown"),
    (ORGANIZATION, "Unknown"),
    (OU, "ServiceUsers"),
    (CN, "serviceuser"),
)


def read(name: x509.Name) -> distinguished_name.DistinguishedName:
    return parsed(name.public_bytes())


def test_the_last_part_comes_first() -> None:
    expected = "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=US"
    assert rfc2253(read(SERVICE)) == expected


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a, b", "a\\, b"),
        ('=+<>;"\\', '\\=\\+\\<\\>\\;\\"\\\\'),
        ("#1 and #2", "\\#1 and \\#2"),
        ("  padded ", "\\ \\ padded\\ "),
        (" ", "\\ "),
        ("zo\u00eb", "zo\u00eb"),
    ],
)
def test_what_is_escaped(value: str, written: str) -> None:
    assert rfc2253(read(name_of((CN, value)))) == f"CN={written}"


def test_other_attributes_are_hexadecimal() -> None:
    name = name_of((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.SERIAL_NUMBER, "1"), (CN, "ali"))
    assert rfc2253(read(name)) == "CN=ali,2.5.4.5=#130131,1.2.840.113549.1.9.1=#1603614062"


def test_what_has_more_than_one_attribute() -> None:
    part = x509.RelativeDistinguishedName(
        [x509.NameAttribute(CN, "ali"), x509.NameAttribute(NameOID.USER_ID, "7")]
    )
    written = rfc2253(read(x509.Name([*name_of((ORGANIZATION, "o")).rdns, part])))
    assert written in ("CN=ali+UID=7,O=o", "UID=7+CN=ali,O=o")


def test_text_of_two_bytes_a_letter() -> None:
    name = x509.Name([x509.NameAttribute(CN, "ali", _ASN1Type.BMPString)])
    assert common_name(read(name)) == "ali"


def test_the_most_special_common_name() -> None:
    assert common_name(read(name_of((CN, "general"), (OU, "x"), (CN, "special")))) == "special"
    assert common_name(read(name_of((OU, "x")))) == ""


def test_a_long_name() -> None:
    assert common_name(read(name_of((OU, "u" * 64), (OU, "v" * 64), (CN, "c" * 64)))) == "c" * 64


@pytest.mark.parametrize(
    "der", [b"", b"\x30", b"\x30\x05\x31", b"\x31\x00", b"\x30\x02\x30\x00", b"\x30\x82\xff\xff"]
)
def test_what_is_no_name(der: bytes) -> None:
    with pytest.raises(ValueError, match="name"):
        parsed(der)


def test_every_cut_of_a_name_is_refused() -> None:
    der = SERVICE.public_bytes()
    for end in range(len(der)):
        with pytest.raises(ValueError, match="name"):
            parsed(der[:end])
