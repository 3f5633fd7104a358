"""Messages of all forms as columns, for readers of millions of them."""
