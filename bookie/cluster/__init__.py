"""A cluster's metadata in BookKeeper's own layout: its bookies, its ledgers, and how it begins.

No sockets, no ZooKeeper: the MetadataStore is a parameter.
"""
