"""Pages for people: one HTML file each, which needs nothing else and no network."""
