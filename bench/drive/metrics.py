"""One figure out of a server's /metrics page, which it may or may not have."""

import urllib.error
import urllib.request

LOOP_PAUSE = "magnetar_loop_pause_seconds_max"
OWN_PAUSE = "magnetar_loop_pause_own_seconds_max"


def parse_gauge(page: str, name: str) -> float | None:
    """Return the largest sample of a gauge over all labels; None if the page has none."""
    found = [
        float(line.rsplit(" ", 1)[1])
        for line in page.splitlines()
        if line.startswith((f"{name} ", f"{name}{{"))
    ]
    return max(found, default=None)


def loop_pauses_ms(http_port: int) -> dict[str, float]:
    """The longest pause of the server's loop, by the clock and in its own CPU time; a peer has no
    such gauges.
    """
    url = f"http://127.0.0.1:{http_port}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            page = answer.read().decode()
    except (urllib.error.URLError, OSError):
        return {}
    found = {
        "pause_ms": parse_gauge(page, LOOP_PAUSE),
        "own_pause_ms": parse_gauge(page, OWN_PAUSE),
    }
    return {name: seconds * 1000 for name, seconds in found.items() if seconds is not None}
