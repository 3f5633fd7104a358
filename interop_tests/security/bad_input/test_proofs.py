"""Every proof in every protocol: who is let in is who it says, and may do what he may."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from .proofs import PASSWORDS, TOKENS
from .visitors import BY_PASSWORD, BY_TOKEN, Found

WRITERS = {"root", "writer"}


@pytest.mark.parametrize("visit", [*BY_TOKEN, *BY_PASSWORD], ids=lambda visit: visit.__name__)
def test_each_proof(server, beside, visit):
    """A failure is answered after 0.3 s, so several come at a time."""
    proofs = TOKENS if visit in BY_TOKEN else PASSWORDS
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda proof: visit(server, proof), proofs))
    for proof, seen in zip(proofs, found, strict=True):
        if proof.role is None:
            assert seen is None, proof.what
            continue
        assert isinstance(seen, Found), proof.what
        assert seen.is_super in (None, proof.role == "root"), proof.what
        assert seen.writes in (None, proof.role in WRITERS), proof.what
    beside.works()
