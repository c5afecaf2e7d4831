"""What every job on Spark needs: a session, tasks with numbers, caches of workers."""
