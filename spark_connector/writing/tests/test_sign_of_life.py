"""An attempt is heard of until it is over, and a server that is away does not end it."""

import threading

from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.writing import sign_of_life


def test_signs_are_given_until_it_is_over() -> None:
    heard, threads = threading.Semaphore(0), set[threading.Thread]()

    def renew() -> None:
        threads.add(threading.current_thread())
        heard.release()
        raise ServiceError("away")

    with sign_of_life.given(renew, 0.01):
        for _ in range(3):
            assert heard.acquire(timeout=30)
    (speaker,) = threads
    speaker.join(30)
    assert not speaker.is_alive()
