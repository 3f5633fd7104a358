"""An attempt is heard of until it is over, whatever goes wrong once."""

import threading

import pytest

from magnetar.spark_connector.errors import ConnectorError, OptionError, ServiceError
from magnetar.spark_connector.writing import sign_of_life


@pytest.mark.parametrize("trouble", [ServiceError("away"), OptionError("no token just now")])
def test_signs_are_given_until_it_is_over(trouble: ConnectorError) -> None:
    heard, threads = threading.Semaphore(0), set[threading.Thread]()

    def renew() -> None:
        threads.add(threading.current_thread())
        heard.release()
        raise trouble

    with sign_of_life.given(renew, 0.01):
        for _ in range(3):
            assert heard.acquire(timeout=30)
    (speaker,) = threads
    speaker.join(30)
    assert not speaker.is_alive()
