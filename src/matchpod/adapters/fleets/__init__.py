"""Implement the Fleet port: the different ways to get game servers."""
