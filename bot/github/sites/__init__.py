"""Static sites of what is stored: for GitHub Pages."""
