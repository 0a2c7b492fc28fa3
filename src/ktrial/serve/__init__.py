"""The store's studies in a browser: the pages of a site on request, and the studies that run now, live."""
