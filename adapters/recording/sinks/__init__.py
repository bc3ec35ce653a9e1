"""Where a log is written: a file of JSON lines, a SQLite database, memory, or a callable."""
