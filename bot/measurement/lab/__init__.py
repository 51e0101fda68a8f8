"""An experiment of the lab, from its definition to what it gave."""
