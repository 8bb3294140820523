"""Views of a match for callers: results, rounds, timelines, cards and attention."""
