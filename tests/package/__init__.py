"""Tests of the wheel, installed in a fresh environment: `make test-wheel`."""
