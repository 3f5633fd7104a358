# Sourced by serve and test: a virtual environment in .venv with this checkout installed in it.
#
# POSIX sh. It installs nothing outside .venv unless the user gave leave for apt (--apt, MAGNETAR_APT=1);
# otherwise it names in one sentence what is missing, with the command that brings it.

ALL_EXTRAS=test,dev

stop() {
    echo "magnetar: $*" >&2
    exit 2
}

# bring NEED PACKAGE...: install Debian packages with leave, else say what is needed and stop.
bring() {
    need=$1
    shift
    command="apt-get install -y --no-install-recommends $*"
    if [ "${MAGNETAR_APT:-0}" != 1 ]; then
        stop "missing: $need; run '$command' as root, or give leave with --apt${hint:-}"
    fi
    command -v apt-get >/dev/null || stop "missing: $need; there is no apt-get to bring it"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || stop "missing: $need; apt-get needs root or sudo"
        as_root=sudo
    fi
    echo "magnetar: installing $*" >&2
    $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive $command >/dev/null
}

find_python() {
    python=${PYTHON:-python3}
    command -v "$python" >/dev/null || bring "Python 3.11 or newer" python3 python3-venv
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "Python 3.11 or newer is needed; name one with PYTHON=..., $python is $("$python" -V)"
}

# The hot functions are compiled where there is what that takes; without it they run in Python.
can_compile() {
    headers=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
    command -v "${CC:-cc}" >/dev/null && [ -e "$headers/Python.h" ]
}

prepare_compiler() {
    if ! can_compile && [ "${MAGNETAR_APT:-0}" = 1 ]; then
        (bring "a C compiler and Python's headers" gcc libc6-dev python3-dev) || true
    fi
    can_compile || echo "magnetar: no C compiler or no Python.h: the codec runs in pure Python," \
        "at half the speed (apt-get install gcc libc6-dev python3-dev, then start again)" >&2
}

# What an installation depends on: how it is described, what is compiled, and whether that can be.
fingerprint() {
    can_compile && kind=compiled || kind=pure
    .venv/bin/python -c 'import hashlib, pathlib, sys
sources = [p for top in ("core", "bookie", "wire") for p in pathlib.Path(top).rglob("*.p[yx][xd]")]
sources = [pathlib.Path("pyproject.toml"), pathlib.Path("setup.py"), *sorted(sources)]
digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
print(digest, sys.version_info[:2], sys.argv[1])' $kind
}

# install_magnetar EXTRAS: make .venv and install into it, unless that was done for the same sources.
install_magnetar() {
    if [ ! -x .venv/bin/python ]; then
        find_python
        "$python" -c 'import ensurepip' 2>/dev/null || bring "Python's venv module" python3-venv
        "$python" -m venv .venv
    fi
    stamp=.venv/installed-${1:-plain}
    # what the tests need includes what the server needs
    [ -n "$1" ] || [ ! -f ".venv/installed-$ALL_EXTRAS" ] || stamp=.venv/installed-$ALL_EXTRAS
    if [ "$(cat "$stamp" 2>/dev/null)" != "$(fingerprint)" ]; then
        echo "magnetar: installing into .venv (a minute, once)" >&2
        prepare_compiler
        find core bookie wire -name "*.so" -exec rm {} +  # built from other sources
        # compat: a path, not a finder that every start of Python would have to load (15 ms)
        .venv/bin/python -m pip install --quiet --disable-pip-version-check \
            --config-settings editable_mode=compat -e ".${1:+[$1]}"
        fingerprint >"$stamp"
    fi
}
