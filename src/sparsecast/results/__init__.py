"""What questions return: plain classes that list their columns once."""
