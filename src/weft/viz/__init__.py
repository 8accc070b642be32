"""Pictures of what the compiler did: the record of a compile, and the page that shows it."""
