"""Drive matches from their creation to the release of their servers, with one idempotent step per phase."""
