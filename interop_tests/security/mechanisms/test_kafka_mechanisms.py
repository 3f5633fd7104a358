"""Kafka's clients in each language with each mechanism of SASL: right and wrong proofs, and rights
that are taken and given back while they are connected. librdkafka is in `test_kafka_clients.py`,
and tokens that clients fetch themselves are in `oauth/`.
"""

import asyncio
import warnings

import aiokafka
import aiokafka.errors
import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from interop_tests.security.kafka_people import ALI, ROOT, allow, made, rule, taken
from interop_tests.security.pulsar_people import token

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    import kafka.errors
    from kafka.net.sasl.oauth import AbstractTokenProvider

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER")
SECONDS = 20
JAVA_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(SCRAM, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}


@pytest.fixture
def allowed(root, topic):
    """A topic that `ali` may write and read."""
    made(root, topic)
    may_write(root, topic)
    allow(
        root,
        rule(ResourceType.TOPIC, topic, AclOperation.READ),
        rule(ResourceType.GROUP, topic, AclOperation.READ),
    )
    return topic


def may_write(root, topic):
    allow(root, rule(ResourceType.TOPIC, topic, AclOperation.WRITE))


def proofs(mechanism):
    """A right one and wrong ones."""
    if mechanism == "OAUTHBEARER":
        yield {"token": token("ali")}
        yield {"token": token("ali", seconds=-60)}
        yield {"token": token("ali", secret=b"x" * 32)}
        return
    name, password = ROOT if mechanism == "PLAIN" else ALI
    yield {"name": name, "password": password}
    yield {"name": name, "password": "a guess"}
    yield {"name": "eve", "password": password}


@pytest.mark.java
@pytest.mark.parametrize("mechanism", JAVA_LOGIN)
def test_java(kafka_java, secure, allowed, mechanism):
    right, *wrong = proofs(mechanism)
    assert java_exchange(kafka_java, secure, allowed, mechanism, right) == ["x"]
    for each in wrong:
        seen = java_exchange(kafka_java, secure, allowed, mechanism, each)
        assert seen == "SaslAuthenticationException"


def java_exchange(kafka_java, secure, topic, mechanism, proof):
    settings = java_settings(mechanism, proof)
    return kafka_java.play("identity.exchange", secure.bootstrap_servers, topic, settings=settings)


def java_settings(mechanism, proof):
    known = f'username="{proof["name"]}" password="{proof["password"]}"'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{JAVA_LOGIN[mechanism]} required {known};",
    }


@pytest.mark.go
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", ["franz", "sarama"])
def test_go(kafka_go, secure, allowed, tmp_path, client, mechanism):
    if client == "sarama" and mechanism in SCRAM:
        return  # it leaves SCRAM to the application
    for number, proof in enumerate(proofs(mechanism)):
        if "token" in proof:
            (tmp_path / "token").write_text(proof["token"])
            proof = {"token": str(tmp_path / "token")}
        seen = kafka_go.play(
            f"{client}.exchange", secure.bootstrap_servers, allowed, mechanism=mechanism, **proof
        )
        if number == 0:
            assert seen == ["x"]
        else:
            assert isinstance(seen, str), seen


@pytest.mark.node
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafkajs(kafka_node, secure, allowed, mechanism):
    right, *wrong = [
        kafka_node.play(
            "exchange",
            secure.bootstrap_servers,
            allowed,
            mechanism=mechanism.lower(),
            **proof,
        )
        for proof in proofs(mechanism)
    ]
    assert right == ["x"]
    if mechanism == "OAUTHBEARER":  # it takes the refusal in JSON for a success (RFC 7628 3.2.2)
        assert set(wrong) == {"KafkaJSNumberOfRetriesExceeded"}
    else:
        assert set(wrong) == {"KafkaJSSASLAuthenticationError"}


class Shown(AbstractTokenProvider):
    """What the client of kafka-python shows."""

    def __init__(self, shown):
        self._shown = shown

    def token(self):
        return self._shown


class ShownLater(aiokafka.abc.AbstractTokenProvider):
    """The same for aiokafka."""

    def __init__(self, shown):
        self._shown = shown

    async def token(self):
        return self._shown


def options(secure, mechanism, proof, provider):
    known = (
        {"sasl_oauth_token_provider": provider(proof["token"])}
        if "token" in proof
        else {"sasl_plain_username": proof["name"], "sasl_plain_password": proof["password"]}
    )
    return {
        "bootstrap_servers": secure.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        **known,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(secure, allowed, mechanism):
    right, *wrong = [options(secure, mechanism, each, Shown) for each in proofs(mechanism)]
    producer = kafka.KafkaProducer(**right)
    assert producer.send(allowed, b"x").get(SECONDS).offset == 0
    producer.close()
    for each in wrong:  # with a version it does not connect at once, and leaves no socket behind
        refused = kafka.KafkaProducer(api_version=(4, 0), max_block_ms=1_000, **each)
        with pytest.raises(kafka.errors.KafkaError):
            refused.send(allowed, b"y").get(SECONDS)
        refused.close(0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(secure, allowed, mechanism):
    right, *wrong = [options(secure, mechanism, each, ShownLater) for each in proofs(mechanism)]

    async def write(known):
        producer = aiokafka.AIOKafkaProducer(**known)
        try:
            await producer.start()
            return (await producer.send_and_wait(allowed, b"x")).offset
        finally:
            await producer.stop()

    assert asyncio.run(write(right)) == 0
    for each in wrong:
        with pytest.raises(aiokafka.errors.KafkaError):
            asyncio.run(write(each))


# -- rights that are taken, and given back ------------------------------------------------------

DENIED = ("TopicAuthorizationException", "TOPIC_AUTHORIZATION_FAILED")


@pytest.mark.parametrize(
    ("process", "family"),
    [
        pytest.param("kafka_java", "identity.taken", marks=pytest.mark.java),
        pytest.param("kafka_go", "franz.taken", marks=pytest.mark.go),
        pytest.param("kafka_node", "taken", marks=pytest.mark.node),
    ],
    ids=["java", "franz", "kafkajs"],
)
def test_a_right_that_is_taken(request, secure, root, topic, process, family):
    made(root, topic)
    may_write(root, topic)
    proof = {"name": ALI[0], "password": ALI[1]}
    given = {"mechanism": "SCRAM-SHA-256", **proof}
    if process == "kafka_java":
        given = {"settings": java_settings("SCRAM-SHA-256", proof)}
    if process == "kafka_node":
        given["mechanism"] = "scram-sha-256"
    driver = request.getfixturevalue(process)
    scene = driver.start(family, secure.bootstrap_servers, topic, **given)
    scene.wait_for("sent")
    taken(root, topic)
    scene.tell("taken")
    scene.wait_for("refused")
    may_write(root, topic)
    scene.tell("given")
    before, after, again = scene.result()
    assert after in DENIED, after
    assert (before, again) == ("none", "none")


def test_a_right_that_is_taken_from_pythons_clients(secure, root, topic):
    made(root, topic)
    may_write(root, topic)
    proof = {"name": ALI[0], "password": ALI[1]}
    producer = kafka.KafkaProducer(**options(secure, "SCRAM-SHA-512", proof, Shown))
    producer.send(topic, b"0").get(SECONDS)

    async def write():
        later = aiokafka.AIOKafkaProducer(**options(secure, "SCRAM-SHA-512", proof, ShownLater))
        await later.start()
        try:
            await later.send_and_wait(topic, b"1")
            taken(root, topic)
            with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
                producer.send(topic, b"2").get(SECONDS)
            with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
                await later.send_and_wait(topic, b"3")
            may_write(root, topic)
            await later.send_and_wait(topic, b"4")
        finally:
            await later.stop()

    asyncio.run(write())
    producer.close()  # one that was refused does not go on
    producer = kafka.KafkaProducer(**options(secure, "SCRAM-SHA-512", proof, Shown))
    assert producer.send(topic, b"5").get(SECONDS).offset == 3
    producer.close()
