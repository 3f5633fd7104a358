"""What pyproject.toml cannot say: where packages are, what ships of them, and what is compiled.

The folders `core`, `wire` and `bookie` stand at the top of the repository and are installed as
`magnetar.core`, `magnetar.wire` and `magnetar.bookie` (docs/decisions/0016).

What is compiled is optional: the twins of pure functions (docs/decisions/0008), and the modules of
the hot path (docs/decisions/0019), which mypyc compiles as they are. Without a C compiler or
Python's headers the installation goes on without them. `MAGNETAR_BUILD_PURE=1` leaves both out;
`MAGNETAR_BUILD_QUICK=1` compiles without optimisation, for those who only look at what is built.
"""

import contextlib
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Extension, find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

ROOMS = ("core", "wire", "bookie", "spark_connector")
"""Folders at the top that are installed inside `magnetar`."""
SHARED = ["core/native/octets.pxd", "core/entry/columns/buffers.pxd"]
TWINS = [
    "core.compaction.compiled",
    "core.entry.columns.compiled",
    "core.entry.compiled",
    "core.entry.kafka.compiled",
    "core.entry.mqtt.compiled",
    "core.entry.pulsar.compiled",
    "core.ledger.log.compiled",
    "core.link.compiled",
    "core.link.readiness.compiled",
    "bookie.format.compiled",
    "bookie.machine.compiled",
    "bookie.rpc.compiled",
    "wire.kafka.compiled",
    "wire.mqtt.codec.compiled",
    "wire.pulsar.hot.compiled.reading",
    "wire.pulsar.hot.compiled.writing",
]

HOT = [
    "bookie.client.connection.connection",
    "bookie.client.connection.connections",
    "bookie.client.connection.sent_requests",
    "bookie.client.quorum.ensemble_adds",
    "bookie.client.quorum.pending_adds",
    "bookie.client.quorum.writer",
    "bookie.client.refused_runs",
    "bookie.client.writer",
    "bookie.embedded_store",
    "bookie.format.entries",
    "bookie.requests.back_pressure",
    "bookie.requests.in_progress",
    "bookie.requests.request_counters",
    "bookie.requests.session",
    "bookie.rpc.adds",
    "bookie.rpc.client_wire",
    "bookie.rpc.wire",
    "bookie.server.bookie",
    "bookie.server.cache.write_cache",
    "bookie.server.disk_usage",
    "bookie.server.journal.files",
    "bookie.server.journal.flusher",
    "bookie.server.journal.groups",
    "bookie.server.journal.kernel_writer",
    "bookie.server.journal.writer",
    "bookie.server.ledgers.lent",
    "bookie.server.ledgers.served",
    "bookie.server.ledgers.states",
    "bookie.server.statistics",
    "core.broker.row_making",
    "core.broker.sweep_work",
    "core.dispatch.selectors",
    "core.dispatch.shared",
    "core.dispatch.single",
    "core.entry.forms",
    "core.entry.header",
    "core.entry.mqtt.form",
    "core.entry.mqtt.run",
    "core.entry.mqtt.segments",
    "core.entry.stamps",
    "core.kernel.clock",
    "core.kernel.pieces",
    "core.ledger.cursor.acks",
    "core.ledger.cursor.cursor",
    "core.ledger.cursor.pending_acks",
    "core.ledger.log.appends",
    "core.ledger.log.chain",
    "core.ledger.log.change_notice",
    "core.ledger.log.ledger_list",
    "core.ledger.log.managed_ledger",
    "core.ledger.log.planning",
    "core.ledger.log.row_numbers",
    "core.ledger.log.statistics",
    "core.ledger.read.latest_time",
    "core.ledger.read.tail_cache",
    "core.ledger.read.transaction_index",
    "core.link.connection",
    "core.link.loop",
    "core.link.memory.claims",
    "core.link.memory.held_writers",
    "core.link.memory.inbound",
    "core.link.memory.outbound",
    "core.link.memory.pace",
    "core.link.memory.pauses",
    "core.link.partial_frame",
    "core.link.readiness.passed_over",
    "core.link.settler",
    "core.link.sockets",
    "core.security.access",
    "core.topic.persistent_topic",
    "core.topic.publishing.admission",
    "core.topic.publishing.producer",
    "core.topic.publishing.sequences",
    "core.topic.shadow_ledger",
    "core.topic.shadow_topic",
    "core.topic.subscription.consumer",
    "core.topic.subscription.outstanding",
    "core.topic.subscription.replay",
    "core.topic.subscription.shared",
    "core.topic.subscription.single_active",
    "core.topic.subscription.source",
    "core.topic.subscription.subscription",
    "spark_connector.values.avro_decoder",
    "wire.kafka.session.pending_requests",
    "wire.kafka.session.produce.batch_append",
    "wire.kafka.session.produce.handler",
    "wire.kafka.session.produce.produce",
    "wire.kafka.session.produce.single_batch",
    "wire.kafka.session.session",
    "wire.kafka.wire",
    "wire.mqtt.delivery.feed",
    "wire.mqtt.delivery.lagging_reader",
    "wire.mqtt.delivery.logs",
    "wire.mqtt.delivery.matcher",
    "wire.mqtt.delivery.packet_ids",
    "wire.mqtt.delivery.sent_messages",
    "wire.mqtt.delivery.session_subscriptions",
    "wire.mqtt.delivery.shared_group",
    "wire.mqtt.delivery.stored_messages",
    "wire.mqtt.delivery.subscriber",
    "wire.mqtt.services",
    "wire.mqtt.session.client",
    "wire.mqtt.session.connect",
    "wire.mqtt.session.pending_run",
    "wire.mqtt.session.publish",
    "wire.mqtt.session.session",
    "wire.mqtt.session.unreleased",
    "wire.mqtt.traffic",
    "wire.mqtt.wire",
    "wire.pulsar.parts",
    "wire.pulsar.session.consumers.consume",
    "wire.pulsar.session.producers.produce",
    "wire.pulsar.session.requests",
    "wire.pulsar.session.session",
    "wire.pulsar.session.transactions.participation",
    "wire.pulsar.wire",
]
"""Modules that mypyc compiles from their own source: they run for each sweep, append or packet.
"""
HOT_LIBRARY = "magnetar.hot__mypyc"
"""All of them; what has a module's name only looks its part up there."""
MYPY = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]


def hot_modules() -> list[Extension]:
    """The extensions of the modules in HOT; none if mypyc is not here, or refuses them."""
    try:
        from mypyc.build import mypycify
    except ImportError:
        return []
    here, generated = Path.cwd(), Path("build/mypyc").absolute()
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        front = Path("magnetar")
        front.mkdir()
        for part in (here / "magnetar").iterdir():
            if part.name not in ROOMS:
                (front / part.name).symlink_to(part)
        for room in ROOMS:
            (front / room).symlink_to(here / room)
        sources = [f"magnetar/{name.replace('.', '/')}.py" for name in HOT]
        try:
            extensions = mypycify(
                [*MYPY, *sources],
                opt_level="2",
                debug_level="0",
                multi_file=True,  # several compilers at once
                target_dir=str(generated),
                group_name=HOT_LIBRARY.removesuffix("__mypyc"),
            )
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it leaves when it refuses a file,
            # and another version of it may fail: then the sources run
            sys.stderr.write(f"magnetar: the hot path is not compiled: {error}\n")
            return []
    for extension in extensions:
        extension.optional = True
        extension.include_dirs.append(str(generated / "magnetar"))  # the library's headers
    return extensions


def is_set(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


class BuildWhatCompiles(build_ext):
    """Builds a module of the hot path only if their library is: Python prefers it to its source."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.cython_c_in_temp = True  # no generated C beside the sources

    def finalize_options(self) -> None:
        if not is_set("MAGNETAR_BUILD_PURE"):
            self.distribution.ext_modules += hot_modules()
        super().finalize_options()
        self._library_failed = False

    def run(self) -> None:
        if is_set("MAGNETAR_BUILD_QUICK"):
            for extension in self.extensions or ():
                extension.extra_compile_args.append("-O0")  # the last one counts
        super().run()
        library = Path(self.get_ext_fullpath(HOT_LIBRARY))
        if self.inplace and library.exists() and not self._library_failed:
            library.touch()  # it is as new as the sources, if nothing of it had to be built again

    def build_extension(self, ext: Extension) -> None:
        if ext.name == HOT_LIBRARY:
            self._library_failed = True
            self._build_together(ext)
            self._library_failed = False
        elif ext.name.removeprefix("magnetar.") in HOT and self._library_failed:
            raise CompileError(f"{ext.name} needs {HOT_LIBRARY}")
        else:
            super().build_extension(ext)

    def _build_together(self, ext: Extension) -> None:
        """Compile the sources of one extension at the same time."""
        compile_some = self.compiler.compile

        def compile_all(sources: list[str], **options: object) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: compile_some([source], **options), sources)
                return [name for names in objects for name in names]

        self.compiler.compile = compile_all
        try:
            super().build_extension(ext)
        finally:
            self.compiler.compile = compile_some


def packages() -> list[str]:
    """Every package that ships. Folders of tests are none: they have no `__init__.py`."""
    # the links in magnetar/ lead to the rooms: they would be found twice
    links = tuple(f"magnetar.{room}" for room in ROOMS)
    front = find_packages(include=["magnetar", "magnetar.*"])
    rooms = find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])
    return [
        *(name for name in front if not name.startswith(links)),
        *(f"magnetar.{name}" for name in rooms),
        "pyspark_magnetar",  # at the top of site-packages, where Spark looks for it
    ]


def twins() -> list[Extension]:
    return [
        Extension(
            f"magnetar.{name}", [name.replace(".", "/") + ".pyx"], depends=SHARED, optional=True
        )
        for name in TWINS
    ]


class BuildWithoutTests(build_py):
    """A conftest.py stands above the folders of tests that it serves, so in a package."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found = super().find_package_modules(package, package_dir)
        return [module for module in found if module[1] != "conftest"]


class BuildAnew(build):
    """setuptools adds to `build/lib*` and packs all of it: what an earlier build has left there,
    and the tree has no more, would ship.
    """

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    cmdclass={
        "build": BuildAnew,
        "build_ext": BuildWhatCompiles,
        "build_py": BuildWithoutTests,
    },
    packages=packages(),
    package_dir={f"magnetar.{room}": room for room in ROOMS}
    | {"pyspark_magnetar": "spark_connector/discovery/pyspark_magnetar"},
    ext_modules=[] if is_set("MAGNETAR_BUILD_PURE") else twins(),
)
