"""The screen. Only here may textual and rich be imported; everything shown comes from a View."""
