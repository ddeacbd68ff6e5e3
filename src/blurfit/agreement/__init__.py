"""The contract that all parties share before anything is collected."""
