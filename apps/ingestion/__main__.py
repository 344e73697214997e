"""`python -m apps.ingestion`."""

from apps.ingestion.commands import main

if __name__ == "__main__":
    main()
