"""What tests with Apache's client for Go share."""

import pytest


@pytest.fixture
def play(pulsar_go, server, topic):
    """Plays a scene on the server of the whole run, with a fresh topic."""
    return lambda family, **args: pulsar_go.play(family, server.pulsar_url, topic, **args)
