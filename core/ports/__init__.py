"""The short contracts between the broker and the world: ledgers and metadata, and below them the
machine that storage runs on.

Each port has one contract test (`tests/contract_*.py`) that runs on every implementation, and a
verified in-memory fake (`core.testing`).
"""
