"""python -m bitwatch"""

from bitwatch.cli import main

main()
