"""Tests with engines that take jobs or keep results elsewhere; the servers are started here. `make test-engines` runs them."""
