"""Receive what game servers send: log posts and plugin reports."""
