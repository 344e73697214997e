"""Every statement of the API. Each method is one transaction; routes know no SQL, and this knows no HTTP."""
