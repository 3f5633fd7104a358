"""Pulsar's WebSocket API with a real client of WebSockets (`websockets`), over plain sockets and
TLS, beside Apache's Python client.
"""

from __future__ import annotations
