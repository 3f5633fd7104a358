"""The stored form of an entry: the header the broker puts before what the producer sent."""
