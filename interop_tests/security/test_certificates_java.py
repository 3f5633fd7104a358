"""Java's programs with certificates: Pulsar's client and admin, Kafka's tools; names as Java's."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from interop_tests import maven
from interop_tests.kafka.console import CONSUMER, TOOLS, Console
from interop_tests.kafka.java.driver import command
from interop_tests.keys import Authority, keystore
from magnetar.core.security.certificates.distinguished_name import parsed, rfc2253
from magnetar.core.security.certificates.mapping_rules import MappingRules

from .certified import People, certified
from .pulsar_people import NAMESPACE
from .test_pulsar_java import ADMIN, COMMAND_SECONDS, MAIN

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]

PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationTls"
PASSWORD = "sesame-sesame"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with certified(tmp_path_factory.mktemp("people")) as found:
        yield found


def test_pulsar(java: Any, people: People, topic: str, tmp_path: Path) -> None:
    people.grant("ali", "produce", "consume")
    url, trust = people.server.pulsar_tls_url, people.authority.certificate

    def create(pair: tuple[str, str], **more: Any) -> Any:
        shown = {"certificate": pair[0], "key": pair[1], "trust": trust, **more}
        return java.play("access.create", url, topic, patience=5, **shown)

    seen = java.play(
        "publish.sync", url, topic, proves=True, trust=trust,
        certificate=people.pair("ali")[0], key=people.pair("ali")[1],
    )  # fmt: skip
    assert seen["ids"] == seen["sent"]
    assert create(people.pair("eve"), proves=True) == "AuthorizationException"
    assert create(people.pair("ali")) == "AuthenticationException"  # the method is none
    assert create(Authority(tmp_path, "theirs").issue("ali"), proves=True) not in ("none", None)


@pytest.mark.slow
def test_pulsar_admin(people: People, tmp_path: Path) -> None:
    jars, conf = maven.build(ADMIN) / "jars", tmp_path / "client.conf"

    def run(name: str, words: str) -> subprocess.CompletedProcess[str]:
        certificate, key = people.pair(name)
        conf.write_text(
            f"webServiceUrl={people.server.https_url}/\n"
            f"brokerServiceUrl={people.server.pulsar_tls_url}/\nuseTls=true\n"
            f"tlsTrustCertsFilePath={people.authority.certificate}\n"
            f"tlsEnableHostnameVerification=true\n"
            f"authPlugin={PLUGIN}\nauthParams=tlsCertFile:{certificate},tlsKeyFile:{key}\n"
        )
        java = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", MAIN)
        return subprocess.run(
            [*java, str(conf), *words.split()],
            capture_output=True, text=True, timeout=COMMAND_SECONDS,
        )  # fmt: skip

    grant = "namespaces grant-permission public/default --role erin --actions produce,consume"
    refused = run("erin", grant)
    assert refused.returncode != 0
    assert "erin may not alter tenant public" in refused.stdout + refused.stderr
    granted = run("root", grant)
    assert granted.returncode == 0, granted.stdout + granted.stderr
    with people.http("root") as root:
        assert root.get(f"{NAMESPACE}/permissions").json()["erin"] == ["consume", "produce"]


@pytest.mark.slow
def test_kafkas_tools(people: People, topic: str, tmp_path: Path) -> None:
    """With a keystore as Java has it, and one of PEM."""
    console = Console(people.server.bootstrap_servers_tls)

    def properties(name: str) -> str:
        file = tmp_path / f"{name}.properties"
        store = keystore(people.pair(name), tmp_path / f"{name}.p12", PASSWORD)
        file.write_text(
            "security.protocol=SSL\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={people.authority.certificate}\n"
            f"ssl.keystore.type=PKCS12\nssl.keystore.location={store}\n"
            f"ssl.keystore.password={PASSWORD}\nssl.key.password={PASSWORD}\n"
        )
        return str(file)

    root, dora = properties("root"), properties("dora")
    console.run(f"{TOOLS}.TopicCommand", "--command-config", root, "--create", "--topic", topic)
    acl = ("--add", "--allow-principal", "User:dora", "--producer", "--consumer",
           "--topic", topic, "--group", "g")  # fmt: skip
    console.run(f"{TOOLS}.AclCommand", "--command-config", root, *acl)
    console.run(f"{TOOLS}.ConsoleProducer", "--command-config", dora, "--topic", topic, said="x\n")
    read = ("--topic", topic, "--group", "g", "--from-beginning", "--max-messages", "1")
    assert "x" in console.run(CONSUMER, "--command-config", dora, *read)
    refused = console.tried(
        f"{TOOLS}.TopicCommand", "--command-config", properties("eve"), "--create", "--topic", "no"
    )
    assert "uthoriz" in refused.stdout + refused.stderr


# -- names ------------------------------------------------------------------------------------

CN, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
ORGANIZATION = NameOID.ORGANIZATION_NAME
SUBJECTS = [
    [
        (NameOID.COUNTRY_NAME, "US"),
        (NameOID.STATE_OR_PROVINCE_NAME, "s"),
        (ORGANIZATION, "Acme"),
        (CN, "ali"),
    ],
    [(CN, "serviceuser"), (OU, "ServiceUsers"), (ORGANIZATION, "Unknown")],
    [(NameOID.DOMAIN_COMPONENT, "org"), (NameOID.DOMAIN_COMPONENT, "example"), (CN, "Ali")],
    [(ORGANIZATION, 'Acme, "Inc" <x>;=+\\'), (CN, "#ali")],
    [(CN, "  padded  "), (ORGANIZATION, " ")],
    [(CN, "zo\u00eb \u00df \u65e5")],
    [(CN, "tab\tand\nline")],
    [(NameOID.EMAIL_ADDRESS, "ali@example.org"), (CN, "ali")],
    [(NameOID.USER_ID, "7"), (NameOID.STREET_ADDRESS, "1 Road"), (NameOID.LOCALITY_NAME, "Rome")],
    [(NameOID.SERIAL_NUMBER, "42"), (NameOID.TITLE, "Dr"), (NameOID.GIVEN_NAME, "Ali")],
    [],
]
RULES = [
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L , RULE:.*DC=(.*?),DC=(.*)/$2.$1.$3$12/U",
    "RULE:CN=(?<who>.).*/${who}$0\\/\\$1/",
    "RULE:.*/x/",
]


def test_names_are_those_of_java_and_kafka() -> None:
    named = [
        x509.Name([x509.NameAttribute(oid, value) for oid, value in subject]).public_bytes()
        for subject in SUBJECTS
    ]
    cases = [(rules, der) for rules in RULES for der in named]
    said = "".join([f"{_base64(rules.encode())} {_base64(der)}\n" for rules, der in cases])
    done = subprocess.run(
        command("magnetar.interop.kafka.Names", heap="64m"),
        input=said, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=True,
    )  # fmt: skip
    theirs = [
        tuple(base64.b64decode(word).decode() for word in line.split(" "))
        for line in done.stdout.splitlines()
    ]
    ours = []
    for rules, der in cases:
        subject = rfc2253(parsed(der))
        mapped = MappingRules(rules).name(subject)
        ours.append((subject, "!" if mapped is None else mapped))
    assert [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b] == []


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
