"""What a run may reach and reveal: the allowlist proxy, held requests, declared secrets and masking."""
