"""Planning: from Forecasts to the way the product will be done."""
