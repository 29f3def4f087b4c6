"""Builds small, randomly initialised models for RL experiments on two CPU cores."""
