"""`/metrics`: what is told, under which names, in which form."""
