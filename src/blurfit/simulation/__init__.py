"""Exact simulation of whole collections, for experiments and forecasts. Never for real noise."""
