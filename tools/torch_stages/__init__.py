"""Stages of calibrate_torch.py: plan.py has their list and sizes, session.py measures, each other file has some stages."""
