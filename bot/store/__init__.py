"""Keep baseline snapshots between runs, in a local directory or on a data branch."""
