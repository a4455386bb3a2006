"""moto's S3 server on 127.0.0.1, with what moto does not do: every request's signature is checked by botocore, of the
bytes that came, and its body against the SHA-256 that was signed. Usage: s3_server.py BUCKET KEY_ID SECRET; one line
with its address, then it serves until its standard input ends, and says then what it had to refuse."""
import hashlib
import io
import json
import os
import re
import sys
import threading

os.environ.setdefault("AWS_ACCESS_KEY_ID", "none")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "none")

import boto3  # noqa: E402
import moto  # noqa: E402
from botocore.auth import S3SigV4Auth  # noqa: E402
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402
from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: E402
from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: E402

REGION = "us-east-1"


class Checked:
    """A WSGI application before moto's."""

    def __init__(self, application, key_id, secret):
        self.application = application
        self.credentials = Credentials(key_id, secret)
        self.checked = 0
        self.refused = []

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        reason = self.refusal(environ, body)
        if reason is None:
            return self.application(environ, start_response)
        self.refused.append(f"{environ['REQUEST_METHOD']} {environ['RAW_URI']}: {reason}")
        text = f"<Error><Code>{reason}</Code><Message>checked by botocore</Message></Error>".encode()
        start_response("403 Forbidden", [("Content-Length", str(len(text))), ("Content-Type", "application/xml")])
        return [text]

    def refusal(self, environ, body):
        headers = {name[5:].replace("_", "-").lower(): value
                   for name, value in environ.items() if name.startswith("HTTP_")}
        headers["content-type"] = environ.get("CONTENT_TYPE", "")
        authorization = headers.get("authorization", "")
        if not authorization:
            return "AccessDenied"
        if self.credentials.access_key not in authorization:
            return "InvalidAccessKeyId"
        signed = re.search("SignedHeaders=([^,]*)", authorization).group(1).split(";")
        request = AWSRequest(method=environ["REQUEST_METHOD"], url="http://" + headers["host"] + environ["RAW_URI"],
                             data=body, headers={name: headers.get(name, "") for name in signed})
        request.context["timestamp"] = headers["x-amz-date"]
        auth = S3SigV4Auth(self.credentials, "s3", REGION)
        signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        if not authorization.endswith("Signature=" + signature):
            return "SignatureDoesNotMatch"
        if hashlib.sha256(body).hexdigest() != headers["x-amz-content-sha256"]:
            return "XAmzContentSHA256Mismatch"
        self.checked += 1
        return None


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


def main():
    bucket, key_id, secret = sys.argv[1:]
    with_check = Checked(DomainDispatcherApplication(create_backend_app), key_id, secret)
    server = make_server("127.0.0.1", 0, with_check, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = boto3.client("s3", endpoint_url=url, region_name=REGION, aws_access_key_id=key_id,
                          aws_secret_access_key=secret)
    client.create_bucket(Bucket=bucket)
    print(json.dumps({"url": url, "moto": moto.__version__}), flush=True)
    sys.stdin.read()
    print(json.dumps({"checked": with_check.checked, "refused": with_check.refused}), flush=True)


main()
