"""What every room may use: errors, names, time, checksums, rate limits."""
