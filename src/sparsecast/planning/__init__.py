"""Planning: from Forecasts to a Plan."""
