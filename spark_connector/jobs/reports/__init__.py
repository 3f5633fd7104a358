"""What jobs say: reports as text, JSON and pages, and how far they are."""
