"""An S3 server on this machine: moto in a process of its own, on loopback."""

import socket
import subprocess
import sys
import time

import boto3

from engines.cluster import free_port

KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
"""The server accepts any keys."""


class Server:
    """An S3 server, empty at start and deleted at stop.

    Args:
        folder: Where its log goes.
    """

    def __init__(self, folder):
        self.address = f"http://127.0.0.1:{free_port()}"
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        plugin = {"ENDPOINT_URL": self.address, "ACCESS_KEY": "testing", "SECRET_KEY": "testing"}
        self.environment = {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "no_proxy": "127.0.0.1",
            **{f"SNAKEMAKE_STORAGE_S3_{name}": value for name, value in plugin.items()},
        }
        self.polars = {
            "aws_endpoint_url": self.address,
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            **KEYS,
        }

    def start(self):
        """Start the server, and wait until it answers."""
        port = self.address.rpartition(":")[2]
        with self._log.open("wb") as log:
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port]
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        deadline_s = time.monotonic() + 30
        while time.monotonic() < deadline_s:
            try:
                socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"the S3 server did not start: {self._log.read_text()}")

    def stop(self):
        """Stop the server."""
        if self._process:
            self._process.terminate()
            self._process.wait(10)

    def objects(self, bucket):
        """All objects of a bucket by key."""
        return {item.key: item.get()["Body"].read() for item in self._bucket(bucket).objects.all()}

    def _bucket(self, bucket):
        return boto3.resource(
            "s3", endpoint_url=self.address, region_name="us-east-1", **KEYS
        ).Bucket(bucket)
