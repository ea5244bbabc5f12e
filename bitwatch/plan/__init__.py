"""What a run would do, as arithmetic over facts that others gathered.

No torch, no datasets, no files, no processes: the same facts always give the same plan.
"""
