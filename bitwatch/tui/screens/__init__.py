"""The screens: the dashboard, what lies over it for a moment, and the choice of a run."""
