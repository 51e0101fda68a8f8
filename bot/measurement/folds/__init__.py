"""Fold audits: from models and a compiler to what folding them saves and costs."""
