"""The measurements that `tamis bench` runs."""
