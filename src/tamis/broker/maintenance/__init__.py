"""Looking after a data folder: backup and restore, retention, erasing."""
