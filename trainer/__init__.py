"""The training program that bitwatch launches."""
