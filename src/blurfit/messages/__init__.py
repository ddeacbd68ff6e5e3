"""What travels from contributors to databases, as JSON, bytes and files."""
