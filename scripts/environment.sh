# Sourced by serve and test: a virtual environment in .venv with this checkout installed in it.
#
# POSIX sh. It installs nothing outside .venv unless the user gave leave for apt (--apt, MAGNETAR_APT=1);
# otherwise it names in one sentence what is missing, with the command that brings it.

ALL_EXTRAS=test,dev,spark,lake

stop() {
    echo "magnetar: $*" >&2
    exit 2
}

# What is missing is gathered first and said, or brought, all at once: `lack WHAT PACKAGES`, then `bring`.
missing=
packages=
lack() {
    missing="${missing:+$missing, }$1"
    packages="$packages $2"
}

# Install what is missing with leave; else say what it is and what brings it, and stop.
bring() {
    [ -n "$missing" ] || return 0
    command="apt-get install -y --no-install-recommends$packages"
    if [ "${MAGNETAR_APT:-0}" != 1 ]; then
        stop "missing: $missing; run '$command' as root, or give leave with --apt${hint:-}"
    fi
    command -v apt-get >/dev/null || stop "missing: $missing; there is no apt-get to bring it"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || stop "missing: $missing; apt-get needs root or sudo"
        as_root=sudo
    fi
    echo "magnetar: installing$packages" >&2
    while_working $as_root apt-get update -qq
    while_working $as_root env DEBIAN_FRONTEND=noninteractive $command >/dev/null
    missing=
    packages=
}

# Run a command that says nothing for a long time, with a dot for each two seconds of it.
# The dots end with this shell too: Ctrl-C ends it and the command, but nothing that runs behind.
while_working() {
    (while sleep 2 && kill -0 $$ 2>/dev/null; do printf . >&2; done) &
    dots=$!
    status=0
    "$@" || status=$?
    kill $dots
    wait $dots 2>/dev/null || true
    echo >&2
    return $status
}

# The interpreter for .venv: the one that is in it already, or $PYTHON, or python3.
find_python() {
    if [ -x .venv/bin/python ]; then
        python=.venv/bin/python
        return
    fi
    python=${PYTHON:-python3}
    if ! command -v "$python" >/dev/null; then
        lack "Python 3.11 or newer" "python3 python3-venv"
        return
    fi
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "Python 3.11 or newer is needed; name one with PYTHON=..., $python is $("$python" -V)"
    "$python" -c 'import ensurepip' 2>/dev/null || lack "Python's venv module" python3-venv
}

# The hot functions are compiled where there is what that takes; without it they run in Python.
has_compiler() {
    command -v "${CC:-cc}" >/dev/null
}

has_headers() {
    "$python" -c 'import pathlib, sysconfig, sys
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' 2>/dev/null
}

can_compile() {
    has_compiler && has_headers
}

lack_compiler() {
    has_compiler || lack "a C compiler" "gcc libc6-dev"
    has_headers || lack "Python's headers" python3-dev
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
# What it needs of the system is there: `find_python` and `bring` come before.
install_magnetar() {
    if [ ! -x .venv/bin/python ]; then
        echo "magnetar: making .venv" >&2
        "$python" -m venv .venv
        python=.venv/bin/python
    fi
    stamp=.venv/installed-${1:-plain}
    # what the tests need includes what the server needs
    [ -n "$1" ] || [ ! -f ".venv/installed-$ALL_EXTRAS" ] || stamp=.venv/installed-$ALL_EXTRAS
    if [ "$(cat "$stamp" 2>/dev/null)" != "$(fingerprint)" ]; then
        echo "magnetar: installing into .venv (two minutes, once)" >&2
        can_compile || echo "magnetar: no C compiler or no Python.h: the codec runs in pure Python," \
            "at half the speed (apt-get install gcc libc6-dev python3-dev, then start again)" >&2
        find core bookie wire magnetar -name "*.so" -exec rm {} +  # built from other sources
        # compat: a path, not a finder that every start of Python would have to load (15 ms)
        while_working .venv/bin/python -m pip install --quiet --disable-pip-version-check \
            --config-settings editable_mode=compat -e ".${1:+[$1]}"
        fingerprint >"$stamp"
    fi
}
