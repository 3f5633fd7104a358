"""Names and passwords in a file of the form of Apache's `htpasswd`."""
