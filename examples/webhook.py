"""A receiver of webhooks: it checks each signature, and takes each message once.

    tamis serve data --allow-sink 127.0.0.1        # another terminal
    python webhook.py http://127.0.0.1:8080 'price < 5'

It subscribes, and prints the events that match until Ctrl-C. It needs the client:
pip install 'tamis[client]'
"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from tamis.client import Client
from tamis.client.webhooks import WebhookError, verify

seen: set[str] = set()  # ids of messages; a real receiver keeps them in a database


class Receiver(BaseHTTPRequestHandler):
    secret = ""  # what subscribing gives; a real receiver keeps it with its other secrets

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 204
        try:
            message = verify(dict(self.headers), body, self.secret)
            if message.id not in seen:  # a message may come more than once
                seen.add(message.id)
                print(message.body["data"]["event"], flush=True)
        except WebhookError:  # not from the service, or too old
            status = 400
        self.send_response(status)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing about requests."""


def main(server: str, condition: str) -> None:
    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    sink = f"http://127.0.0.1:{receiver.server_port}/"
    with Client(server) as client:
        made = client.subscribe(condition, sink=sink)
        Receiver.secret = made.secret or ""
        print(f"subscription {made.id} sends to {sink}", flush=True)
        try:
            receiver.serve_forever()
        except KeyboardInterrupt:
            client.cancel(made.id, ticket=made.ticket)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
