"""Messages, declared once for all their versions, and functions compiled from them for each."""
