"""Rules about servers: lost servers, orphaned servers, and the shares of the processes that drive matches."""
