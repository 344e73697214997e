"""`python -m pillarbox` is the command line."""

from pillarbox.ops.cli import main

if __name__ == "__main__":
    main()
