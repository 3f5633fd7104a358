"""What this front stores besides messages: sessions and retained messages."""
