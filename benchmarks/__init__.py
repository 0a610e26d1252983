"""How fast it is, measured against the best forms of other tools on the same rows. `make bench` runs it and writes RESULTS.md."""
