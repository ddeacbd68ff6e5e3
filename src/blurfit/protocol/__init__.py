"""What both ends of the wire share."""
