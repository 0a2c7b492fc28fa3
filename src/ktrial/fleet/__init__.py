"""Exact trials on many machines: Dask distributed carries orders to workers, and what came of them back.

The client (`client_executor`) is an Executor of `ktrial.experiment.executor`: it decides which worker does
what, since exactness lets it have one worker checked by another. Dask knows who is there, carries messages,
and notices who is gone. `worker_side` is what workers do; nothing of it needs what only the client has.
"""
