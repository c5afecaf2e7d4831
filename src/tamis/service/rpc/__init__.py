"""The broker over gRPC: `tamis.v1.Tamis`, with the verbs of the HTTP interface."""
