"""The HTML report, and the table of results for people."""
