"""Kafka's rules: the examples of its documentation, and what `SslPrincipalMapper` does besides."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import Invalid
from magnetar.core.security.certificates.mapping_rules import MappingRules

DOCUMENTED = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "serviceuser"),
        ("CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
        ("OU=x,CN=Duke.7,O=y", "duke.7"),
        ("OU=x,O=y", "OU=x,O=y"),
    ],
)
def test_what_kafka_documents(subject: str, name: str) -> None:
    assert MappingRules(DOCUMENTED).name(subject) == name


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=a", "CN=a"),
        ("RULE:CN=(.*)/$1/U", "CN=a", "A"),
        ("RULE:CN=(.*)/$1/", "CN=a,O=b", "a,O=b"),
        ("RULE:CN=a/b/", "CN=a,O=b", None),  # the pattern has to match all of it
        ("RULE:CN=(.)(.)/$2$1$3/", "CN=ab", "ba$3"),  # no such group
        ("RULE:CN=(.)(.)/$12$40/", "CN=ab", "a2$40"),
        ("RULE:CN=(.*)/$0/", "CN=a", "CN=a"),
        ("RULE:CN=(?<who>.*)/${who}!/", "CN=a", "a!"),
        (r"RULE:CN=(.*)\/x/$1\/\$1/", "CN=a/x", "a/$1"),
        ("RULE:CN=(a)?.*/<$1>/", "CN=b", "<>"),
        ("RULE:.*/x/", "CN=a", "xx"),  # as Java's replaceAll: once more at the end
        (" RULE:CN=(.)/$1/ ,, DEFAULT ", "O=b", "O=b"),  # empty rules are ignored
        ("RULE:CN=(.*),.*/$1/,RULE:O=(.*)/$1/", "O=b", "b"),
    ],
)
def test_rules(rules: str, subject: str, name: str | None) -> None:
    assert MappingRules(rules).name(subject) == name


@pytest.mark.parametrize(
    ("rules", "match"),
    [
        ("", "there is no rule"),
        (" , ", "there is no rule"),
        ("DEFAULTS", "neither DEFAULT nor"),
        ("RULE:CN=(.*)/$1", "neither DEFAULT nor"),
        ("RULE:CN=(.*)/$1/l", "neither DEFAULT nor"),
        ("RULE:CN=(.*)/$1/LU", "neither DEFAULT nor"),
        ("RULE:CN=(/x/", "the pattern is wrong"),
        ("RULE:CN=.*/$1/", "has no groups"),
        ("RULE:CN=(.*)/${who}/", "no group who"),
    ],
)
def test_what_is_no_rule(rules: str, match: str) -> None:
    with pytest.raises(Invalid, match=match):
        MappingRules(rules)
