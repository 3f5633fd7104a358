"""Finds ledgers that lack replicas, and restores them: Apache's AutoRecovery."""
