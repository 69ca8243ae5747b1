"""The rows that metrics reduce, and the columns derived on them."""
