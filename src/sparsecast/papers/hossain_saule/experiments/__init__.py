"""The experiment of this paper."""
