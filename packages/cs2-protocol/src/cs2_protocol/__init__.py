"""Parse and format the protocols of Counter-Strike 2 servers, without I/O."""
