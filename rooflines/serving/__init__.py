"""Deployments of a served model: servers, pools, the search for those that keep latencies."""
