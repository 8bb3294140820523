"""Send the events of an organization to the webhooks that it has registered."""
