"""A client for the Kubernetes API, with the calls that an Agones fleet needs."""
