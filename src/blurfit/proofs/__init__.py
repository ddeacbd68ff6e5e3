"""Proofs that a shared vector is short, which two databases check without learning anything."""
