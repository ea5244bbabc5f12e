"""The text of the demo, and the script that made it. README.md tells where it is from."""
