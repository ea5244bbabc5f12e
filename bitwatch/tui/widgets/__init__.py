"""The panels of the dashboard: each draws a View into lines, and knows nothing else."""
