"""The vault as a process of its own: records, ledger and key with their owner, everybody else at a socket."""
