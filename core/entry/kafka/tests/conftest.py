"""Stock clients that are asked for their opinion here."""

import warnings

# kafka-python reads its own files in a way that Python wants to be rid of
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.record.default_records  # noqa: F401  # the tests find it imported
