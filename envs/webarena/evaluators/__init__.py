"""One module for each kind of check. Each takes the check and the evidence, and says what it found."""
