"""Searches that run studies: which of many differences matters."""
