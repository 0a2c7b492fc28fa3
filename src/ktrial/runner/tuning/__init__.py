"""How a search's configurations are named, found on a system, run as trials and kept in the store."""
