"""Limits what a run can access and reveal: allowlist proxy, held requests, declared secrets and masking."""
