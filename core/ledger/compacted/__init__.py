"""The compacted ledger of a topic, beside its log. Start at `compacted_topic.py`."""
