"""Adapters: each module implements one port."""
