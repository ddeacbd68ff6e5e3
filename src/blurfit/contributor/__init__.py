"""What a contributor runs: the record's quadratic is blurred here, and nothing else leaves."""
