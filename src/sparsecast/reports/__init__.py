"""Reports: what was found, as tables for people and as documents for programs."""
