"""Nothing at module level that only Linux has: all can be imported where that is missing."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

IMPORTS_ALL = """
import fcntl, importlib, os, resource, select, signal, socket, sys
from pathlib import Path

# what is not ours is imported as the system is
import bcrypt, click, crc32c, google.protobuf, hypercorn, jwt, msgspec, rocksdict, trio
import starlette.applications

ONLY_LINUX = {
    os: "eventfd fdatasync memfd_create pidfd_open posix_fadvise posix_fallocate sched_getaffinity "
        "EFD_CLOEXEC EFD_NONBLOCK O_DIRECT O_DSYNC O_PATH O_TMPFILE POSIX_FADV_DONTNEED "
        "POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED RWF_DSYNC",
    select: "epoll EPOLLERR EPOLLHUP EPOLLIN EPOLLOUT EPOLLRDHUP POLLRDHUP",
    socket: "SOCK_CLOEXEC SOCK_NONBLOCK SO_PEERCRED TCP_CORK TCP_QUICKACK TCP_USER_TIMEOUT",
    fcntl: "F_ADD_SEALS F_OFD_SETLK F_SETPIPE_SZ",
    resource: "prlimit",
    signal: "pidfd_send_signal",
}
for module, names in ONLY_LINUX.items():
    for name in names.split():
        vars(module).pop(name, None)
sys.platform = "darwin"
OTHERS = ("__main__.py", "conftest.py")

count = 0
for folder, package in (
    ("magnetar", "magnetar"),
    ("core", "magnetar.core"),
    ("bookie", "magnetar.bookie"),
    ("wire", "magnetar.wire"),
):
    for path in sorted(Path(folder).rglob("*.py")):
        if "tests" not in path.parts and path.name not in OTHERS:
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            importlib.import_module(name)
            count += 1
sys.stdout.write(str(count))
"""


def test_everything_imports_without_what_only_linux_has() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_ALL], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150
