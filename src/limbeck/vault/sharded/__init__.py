"""The vault whose records lie in the processes of `torchrun`: one shard for each rank, one noise, one ledger."""
