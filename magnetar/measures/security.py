"""Logins and denials as metric families."""

from collections.abc import Mapping

from magnetar.security.access import GuardedAccess
from magnetar.wire.http.metrics.exposition import Family, counter, label_text


def families(guarded: GuardedAccess) -> list[Family]:
    """Those of a server whose clients authenticate, or that has an audit log."""
    access, audit_file = guarded.access, guarded.audit_file
    found = []
    if access.failures is not None:
        found = [
            _by_mechanism(
                "pulsar_authentication_success_total", "Logins", access.failures.succeeded
            ),
            _by_mechanism(
                "pulsar_authentication_failures_total", "Failed logins", access.failures.failed
            ),
            counter("magnetar_denials_total", "Actions that no rule allowed", access.denials),
        ]
    if audit_file is not None:
        about = "Lines of the audit log that could not be written"
        found.append(counter("magnetar_audit_lost_total", about, audit_file.lost))
    return found


def _by_mechanism(name: str, about: str, counts: Mapping[str, int]) -> Family:
    """The label is that of Pulsar's metrics (`AuthenticationMetrics.java` of 4.2)."""
    family = counter(name, about)
    for mechanism, count in sorted(counts.items()):
        family.add(count, label_text([("auth_method", mechanism)]))
    return family
