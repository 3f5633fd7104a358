"""What Pulsar's producers send, as an entry. Start at `form.py`."""
