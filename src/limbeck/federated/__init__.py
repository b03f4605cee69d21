"""Many owners: each site is a vault of its own, and the server asks all of them. docs/federated.md has the protocol."""
