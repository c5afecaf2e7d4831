"""The service under load: a real server, and a load generator in a process of its own."""
