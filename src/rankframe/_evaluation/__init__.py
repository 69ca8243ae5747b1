"""One value per user, and the means over users."""
