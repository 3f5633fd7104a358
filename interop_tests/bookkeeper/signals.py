"""Signals to servers of tests."""

import os
import signal
import subprocess
from typing import Any


def send(process: subprocess.Popen[Any], how: signal.Signals) -> None:
    """Send a signal. With SIGSTOP nothing of the process runs any more once this has returned: the
    kernel says so when all threads have stopped, of which one on another core goes on for a moment.
    """
    process.send_signal(how)
    if how is signal.SIGSTOP:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
