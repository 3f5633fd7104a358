"""The admin REST interface, one file per resource."""
