"""`python -m matchpod` is the `matchpod` command."""

from matchpod.cli import main

main()
