"""From stored trials to results. Nothing here boots anything."""
