"""What a record is made of, and how any table becomes records."""
