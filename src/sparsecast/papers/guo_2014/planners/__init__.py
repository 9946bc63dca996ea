"""Its planner."""
