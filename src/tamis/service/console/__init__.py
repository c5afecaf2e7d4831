"""The console: pages for people, in a browser, on top of the verbs of HTTP."""
