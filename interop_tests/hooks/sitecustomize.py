"""What Python does when a server of `test_garbage.py` starts, which has this folder in its path.

At SIGUSR1 the server looks for garbage, and writes what it has found.
"""

import gc
import os
import signal
from collections import Counter
from pathlib import Path

WHERE = os.environ.get("GARBAGE_FILE")


def look(*_signal: object) -> None:
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = Counter(type(one).__name__ for one in gc.garbage)
    gc.garbage.clear()
    new = Path(f"{WHERE}.new")
    new.write_text("\n".join(f"{name} {count}" for name, count in found.items()))
    new.rename(str(WHERE))


if WHERE:
    signal.signal(signal.SIGUSR1, look)
