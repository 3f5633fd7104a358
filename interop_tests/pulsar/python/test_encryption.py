"""Messages that only their reader can read: the server passes them on untouched."""

import os
import subprocess

import pulsar
import pytest
from pulsar import CryptoKeyReader, InitialPosition

from interop_tests.keys import rsa_files

from .stock import RECEIVE_MS, drain, numbered, publish


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    """Paths of a public and a private key, as files the client reads."""
    return rsa_files(tmp_path_factory.mktemp("keys"))


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    "codec", [pulsar.CompressionType.NONE, pulsar.CompressionType.ZSTD], ids=str
)
def test_read_with_the_key(client, topic, keys, batched, codec):
    reader = CryptoKeyReader(*keys)
    consumer = client.subscribe(topic, "s", crypto_key_reader=reader)
    producer = client.create_producer(
        topic,
        encryption_key="key-of-mine",
        crypto_key_reader=reader,
        batching_enabled=batched,
        compression_type=codec,
    )
    publish(producer, numbered(20))
    assert drain(consumer, 20) == numbered(20)


def test_chunks(client, topic, keys):
    reader = CryptoKeyReader(*keys)
    consumer = client.subscribe(topic, "s", crypto_key_reader=reader)
    producer = client.create_producer(
        topic, encryption_key="k", crypto_key_reader=reader, chunking_enabled=True
    )
    body = os.urandom(18 * 1024 * 1024)
    producer.send(body)
    assert consumer.receive(RECEIVE_MS).data() == body


@pytest.mark.standalone
def test_the_server_sees_none_of_it(client, topic, keys, magnetar):
    secret = b"a secret of some length that nobody else may ever read"
    producer = client.create_producer(
        topic, encryption_key="k", crypto_key_reader=CryptoKeyReader(*keys)
    )
    client.subscribe(topic, "s", initial_position=InitialPosition.Earliest).close()
    producer.send(secret)
    found = subprocess.run(
        ["grep", "-rlaF", secret.decode(), str(magnetar.data_dir)], capture_output=True, check=False
    )
    assert found.returncode == 1, found.stdout  # grep's word for "nowhere"


def test_without_the_key_what_comes_is_sealed(client, topic, keys):
    consumer = client.subscribe(
        topic, "s", crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME
    )
    producer = client.create_producer(
        topic, encryption_key="k", crypto_key_reader=CryptoKeyReader(*keys), batching_enabled=False
    )
    producer.send(b"open")
    message = consumer.receive(RECEIVE_MS)
    assert message.data() != b"open"
    assert message.encryption_context().is_decryption_failed()
