"""What an attacker can tell from what is released: lower bounds of ε, with confidence."""
