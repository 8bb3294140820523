"""Accept requests for actions on matches, and show them."""
