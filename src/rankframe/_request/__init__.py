"""What a call asks for: labels, keywords, and the columns that metrics may read."""
