"""Speed as a fact that anyone can check: ``python -m benchmarks`` runs all systems on the same data in one run.

``corpus`` makes the data, ``workloads`` says what is measured, ``subjects`` runs each system in a process of its
own, ``report`` prints the table, writes JSON and draws the figure. Only ratios within one run count.
"""
