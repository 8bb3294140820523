"""A client for the Kubernetes API, with the calls that a fleet of Agones needs."""
