"""What machine code consists of: functions, digests, instructions by class."""
