"""Write results for people: the HTML report, and the table of systems and metrics."""
