"""The layers between a socket and the application: access rules, answers, and HTTP/1.1."""
