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

# install_magnetar EXTRAS: make .venv and install into it, unless that was done for this pyproject.toml.
install_magnetar() {
    if [ ! -x .venv/bin/python ]; then
        find_python
        "$python" -c 'import ensurepip' 2>/dev/null || bring "Python's venv module" python3-venv
        "$python" -m venv .venv
    fi
    stamp=.venv/installed-${1:-plain}
    # what the tests need includes what the server needs
    [ -n "$1" ] || [ ! -f ".venv/installed-$ALL_EXTRAS" ] || stamp=.venv/installed-$ALL_EXTRAS
    digest=$(.venv/bin/python -c 'import hashlib, sys
print(hashlib.sha256(open("pyproject.toml", "rb").read()).hexdigest(), sys.version_info[:2])')
    if [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ]; then
        echo "magnetar: installing into .venv (a minute, once)" >&2
        # compat: a path, not a finder that every start of Python would have to load (15 ms)
        .venv/bin/python -m pip install --quiet --disable-pip-version-check \
            --config-settings editable_mode=compat -e ".${1:+[$1]}"
        echo "$digest" >"$stamp"
    fi
}
