"""Code size over releases of the compiler, as pure values: points, steps between neighbours, totals and moves."""
