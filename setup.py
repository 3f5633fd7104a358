"""The compiled twins of pure functions (docs/decisions/0008); all else is in pyproject.toml.

They are optional: without a C compiler or Python's headers the installation goes on without them.
"""

from setuptools import Extension, setup

SHARED = ["core/native/octets.pxd"]
TWINS = [
    "core.entry.compiled",
    "core.link.compiled",
    "bookie.compiled",
    "wire.kafka.compiled",
    "wire.pulsar.hot.compiled.reading",
    "wire.pulsar.hot.compiled.writing",
]

setup(
    ext_modules=[
        Extension(name, [name.replace(".", "/") + ".pyx"], depends=SHARED, optional=True)
        for name in TWINS
    ],
    options={"build_ext": {"cython_c_in_temp": True}},  # no generated C beside the sources
)
