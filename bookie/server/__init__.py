"""One bookie: journal, caches, entry logs, indexes, and the tasks that look after them."""
