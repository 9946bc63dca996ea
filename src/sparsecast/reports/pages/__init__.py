"""Pages: single HTML files that need no other file and no network."""
