"""BookKeeper's protocol between clients and bookies."""
