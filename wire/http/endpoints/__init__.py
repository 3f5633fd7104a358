"""What is served beside admin REST: lookup, health, metrics, the landing page."""
