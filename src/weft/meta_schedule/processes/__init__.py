"""Worker processes of builders and runners: what goes wrong in them stays there."""
