"""Owns running artifacts on this machine: on random data, comparing what they give and how long they take."""
