"""Run rankframe from the command line, on files: printed tables, or files."""
