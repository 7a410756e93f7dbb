"""Reads cases as lines of JSON, and writes for each whether its delivery is genuine."""
import base64, json, sys

from verify_webhook import verify_webhook

for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps(verify_webhook(base64.b64decode(case["body"]), case["header"], case["secrets"])))
