"""Exact simulation of whole collections: for experiments, forecasts, and data in one place."""
