"""Values as Spark's columns: decoded by a schema that the user gives."""
