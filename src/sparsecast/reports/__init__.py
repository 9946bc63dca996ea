"""Reports: results as tables for people and as documents for programs."""
