"""Front halves that several targets share, and the proof that sharing changes nothing."""
