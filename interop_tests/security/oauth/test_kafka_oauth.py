"""Kafka's clients with OAUTHBEARER: they fetch tokens from an issuer, and others when these expire
(KIP-255, KIP-768; KIP-368 for connections that stay).
"""

import asyncio
import time
import warnings

import aiokafka
import aiokafka.abc
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

from interop_tests.security.kafka_people import sent
from interop_tests.waiting import until

from .issuer import RegisteredClient

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer
    from kafka.net.sasl.oauth import AbstractTokenProvider

pytestmark = [
    pytest.mark.node,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SECONDS = 20
JAVA_LOGIN = "org.apache.kafka.common.security.oauthbearer"


@pytest.fixture
def topic(topic, administrator):
    """One that is there: to create it takes another right than to write to it."""
    administrator.http.put(f"/admin/v2/persistent/public/default/{topic}").raise_for_status()
    return topic


@pytest.fixture
def librdkafka(server, issuer):
    """Settings of librdkafka's clients."""

    def made(name, secret=None, **more):
        return {
            "bootstrap.servers": server.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": name,
            "sasl.oauthbearer.client.secret": secret or RegisteredClient(name).secret,
            "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
            "log_level": 0,
            **more,
        }

    return made


@pytest.fixture
def java_settings(issuer):
    """Settings of Java's clients."""

    def made(name, secret=None):
        secret = secret or RegisteredClient(name).secret
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{JAVA_LOGIN}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
            "sasl.login.refresh.min.period.seconds": "1",
            "sasl.login.refresh.buffer.seconds": "1",
            "sasl.jaas.config": f"{JAVA_LOGIN}.OAuthBearerLoginModule required "
            f'clientId="{name}" clientSecret="{secret}";',
        }

    return made


def test_librdkafka(administrator, librdkafka, topic):
    administrator.grant("carol", "produce", "consume")
    assert sent(Producer(librdkafka("carol")), topic) is None
    consumer = Consumer(librdkafka("carol", **{"group.id": topic, "auto.offset.reset": "earliest"}))
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS
    while (message := consumer.poll(1.0)) is None:
        assert time.monotonic() < deadline
    assert message.value() == b"x"
    consumer.close()


@pytest.mark.parametrize("wrong", [("lost", None), ("carol", "not the secret")])
def test_librdkafka_with_what_is_wrong(librdkafka, wrong):
    """A token for somebody else; and a secret that the issuer does not know."""
    failed = []
    client = AdminClient({**librdkafka(*wrong), "error_cb": failed.append})
    deadline = time.monotonic() + SECONDS
    while not failed:
        client.poll(0.1)
        assert time.monotonic() < deadline
    assert failed[0].code() == KafkaError._AUTHENTICATION


def test_librdkafka_goes_on_with_other_tokens(administrator, issuer, librdkafka, topic):
    administrator.grant("hasty", "produce")
    producer = Producer(librdkafka("hasty"))
    assert sent(producer, topic) is None
    asked = issuer.asked()
    while issuer.asked() < asked + 2:
        assert sent(producer, topic) is None


class Fetching(AbstractTokenProvider):
    """Fetches a token whenever the client of kafka-python wants one."""

    def __init__(self, issuer, name):
        self._issuer, self._name = issuer, name

    def token(self):
        return self._issuer.token(self._name)


class FetchingLater(aiokafka.abc.AbstractTokenProvider):
    """The same for aiokafka."""

    def __init__(self, issuer, name):
        self._issuer, self._name = issuer, name

    async def token(self):
        return await asyncio.to_thread(self._issuer.token, self._name)


def test_kafka_python_and_aiokafka(server, administrator, issuer, topic):
    administrator.grant("alice", "produce", "consume")
    options = {
        "bootstrap_servers": server.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    provider = Fetching(issuer, "alice")
    producer = KafkaProducer(sasl_oauth_token_provider=provider, **options)
    producer.send(topic, b"from kafka-python").get(SECONDS)
    producer.close()

    async def read():
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            group_id=topic,
            auto_offset_reset="earliest",
            sasl_oauth_token_provider=FetchingLater(issuer, "alice"),
            **options,
        )
        await consumer.start()
        try:
            return (await asyncio.wait_for(consumer.getone(), SECONDS)).value
        finally:
            await consumer.stop()

    assert asyncio.run(read()) == b"from kafka-python"


def test_they_go_on_with_other_tokens(server, administrator, issuer, topic):
    """kafka-python proves anew; aiokafka is disconnected when its token expires, and comes back."""
    administrator.grant("brief", "produce")
    options = {
        "bootstrap_servers": server.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    begun, asked = time.monotonic(), issuer.asked()
    producer = KafkaProducer(sasl_oauth_token_provider=Fetching(issuer, "brief"), **options)
    while issuer.asked() < asked + 4:
        producer.send(topic, b"x").get(SECONDS)
        assert time.monotonic() < begun + SECONDS
    producer.close()

    async def write():
        provider = FetchingLater(issuer, "brief")
        producer = aiokafka.AIOKafkaProducer(sasl_oauth_token_provider=provider, **options)
        await producer.start()
        try:
            begun, asked = time.monotonic(), issuer.asked()
            while issuer.asked() < asked + 2:
                await producer.send_and_wait(topic, b"x")
                assert time.monotonic() < begun + SECONDS
        finally:
            await producer.stop()

    asyncio.run(write())


@pytest.mark.java
def test_java(kafka_java, server, administrator, issuer, java_settings, topic):
    administrator.grant("carol", "produce", "consume")
    url = server.bootstrap_servers

    def played(*who):
        settings = java_settings(*who)
        return kafka_java.play(
            "identity.exchange", url, topic, issuer=issuer.token_url, settings=settings
        )

    assert played("carol") == ["x"]
    assert played("lost") == "SaslAuthenticationException"
    assert played("carol", "not the secret") == "KafkaException"


@pytest.mark.java
def test_java_goes_on_with_other_tokens(
    kafka_java, server, administrator, issuer, java_settings, topic
):
    administrator.grant("hasty", "produce")
    scene = kafka_java.start(
        "identity.expiring",
        server.bootstrap_servers,
        topic,
        issuer=issuer.token_url,
        settings=java_settings("hasty"),
    )
    scene.wait_for("attached")
    asked = issuer.asked()
    until(lambda: issuer.asked() >= asked + 3)
    scene.tell("over")
    first, error, again = scene.result()
    assert (first, error) == ("none", "none")
    assert again >= 1, "it has proved anew on a connection that stays"
