"""Accept requests for actions on matches, and show the state of requested actions."""
