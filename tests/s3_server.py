"""Run an S3 server in this process: moto's, a stand-in that knows most of the protocol, but is not what people use."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import botocore.session  # type: ignore[import-untyped]
from moto.server import ThreadedMotoServer

BUCKET = "demos"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Yield the URL of a server with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        client = botocore.session.get_session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )
        client.create_bucket(Bucket=BUCKET)
        client.close()
        yield url
    finally:
        server.stop()
