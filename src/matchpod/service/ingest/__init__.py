"""Receive the log posts and plugin reports that game servers send."""
