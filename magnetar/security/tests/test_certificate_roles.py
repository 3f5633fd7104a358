"""Whom a certificate names at a bookie."""

import pytest

from magnetar.security.certificate_roles import roles_in


def certificate(*subject):
    return {"subject": tuple(((key, value),) for key, value in subject)}


def unit(text):
    return certificate(("commonName", "host-1"), ("organizationalUnitName", text))


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("0:writer", ("writer",)),
        ("0: writer , other", ("writer", "other")),
        ("1:cluster;0:writer", ("writer",)),
        ("1:cluster", ("host-1",)),
        ("Engineering", ("host-1",)),
        ("0:", ()),
        ("0:writer,", ()),
        ("0:wri\nter", ()),
        ("00:writer", ("host-1",)),
    ],
)
def test_the_unit_goes_before_the_common_name(text, roles):
    assert roles_in(unit(text)) == roles


def test_the_first_unit_counts_as_for_apache():
    two = certificate(("organizationalUnitName", "0:a"), ("organizationalUnitName", "0:b"))
    assert roles_in(two) == ("a",)


@pytest.mark.parametrize(
    "described",
    [
        {},
        certificate(("countryName", "DE")),
        certificate(("commonName", "a"), ("commonName", "b")),
        certificate(("commonName", " padded")),
        certificate(("commonName", "")),
    ],
)
def test_certificates_that_name_nobody(described):
    assert roles_in(described) == ()
