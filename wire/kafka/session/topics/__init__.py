"""Topics, partitions and brokers: metadata, and requests that change it."""
