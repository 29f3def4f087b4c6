"""The built-in model providers, one file each. They import no provider's package before a model is made."""
