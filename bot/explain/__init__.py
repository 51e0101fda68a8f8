"""Why a cell changed: two cells, and what the compiler says of both."""
