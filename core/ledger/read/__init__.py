"""Reading a log: what is cached, what is stored, what is lost, and where a message is."""
