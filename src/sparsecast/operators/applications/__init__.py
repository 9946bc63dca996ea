"""Applications: what people do products for, on any operator and its vector space."""
