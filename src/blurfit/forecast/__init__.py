"""The error to expect, before anything is collected."""
