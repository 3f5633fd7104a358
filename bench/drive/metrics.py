"""One figure out of a server's /metrics page, which it may or may not have."""

import urllib.error
import urllib.request

LOOP_PAUSE = "magnetar_loop_pause_seconds_max"


def parse_gauge(page: str, name: str) -> float | None:
    """Return the largest sample of a gauge over all labels; None if the page has none."""
    found = [
        float(line.rsplit(" ", 1)[1])
        for line in page.splitlines()
        if line.startswith((f"{name} ", f"{name}{{"))
    ]
    return max(found, default=None)


def loop_pause_ms(http_port: int) -> float | None:
    """Read the longest pause of the server's loop; a peer has no such gauge."""
    url = f"http://127.0.0.1:{http_port}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            seconds = parse_gauge(answer.read().decode(), LOOP_PAUSE)
    except (urllib.error.URLError, OSError):
        return None
    return None if seconds is None else seconds * 1000
