"""`python -m era.worker`."""

from era.worker import main

main()
