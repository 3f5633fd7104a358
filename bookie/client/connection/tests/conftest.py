"""What these tests share."""

from magnetar.core.link.conftest import tls_contexts  # noqa: F401 -- a fixture of these tests too
