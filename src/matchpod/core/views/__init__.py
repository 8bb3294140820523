"""What callers see of a match: results, rounds, timelines, cards, attention."""
