"""Reads cases as lines of JSON, and writes for each whether the provider's library takes its delivery for genuine."""
import base64, json, sys

import stripe

for line in sys.stdin:
    case = json.loads(line)
    body, header, secret = base64.b64decode(case["body"]), case["header"], case["secrets"][0]
    try:
        stripe.WebhookSignature.verify_header(body.decode(), header, secret, 300)
        print("true")
    except stripe.SignatureVerificationError:
        print("false")
