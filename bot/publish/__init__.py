"""Publish: what leaves the bot for GitHub (comments, check runs, re-runs) and for GitHub Actions (outputs, summary)."""
