"""What a difference means: intervals, tests, power, segments, many systems, gates."""
