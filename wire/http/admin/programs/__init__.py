"""What programs ask that read ledgers or write batches themselves, as Spark does."""
