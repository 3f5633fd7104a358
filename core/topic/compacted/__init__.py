"""How consumers that read compacted read a topic. Start at `compacted_source.py`."""
