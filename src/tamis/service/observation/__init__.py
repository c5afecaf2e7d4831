"""What those who run a service see: metrics, logs and health."""
