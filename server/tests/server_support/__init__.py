"""What tests of several rooms of the server share."""
