"""Regions: state, switch, statistics, silence."""
