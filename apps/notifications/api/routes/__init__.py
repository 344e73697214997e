"""What may be asked for over HTTP; one file for each kind of thing, one function that makes its router."""
