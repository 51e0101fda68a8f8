"""From a report to text: view, filters, templates, terminal."""
