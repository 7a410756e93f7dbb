"""Reads cases as lines of JSON, and writes for each whether its delivery is genuine, or that its secret is wrong."""
import base64, json, sys

from verify_webhook import verify_webhook

for line in sys.stdin:
    case = json.loads(line)
    try:
        print(json.dumps(verify_webhook(base64.b64decode(case["body"]), case["header"], case["secrets"])))
    except ValueError:
        print("error")
