import hashlib, hmac, re, time

def verify_webhook(body: bytes, header: str, secrets: list[str], tolerance: int = 300) -> bool:
    if any(re.search("[\\s\"']", secret) for secret in secrets):
        raise ValueError("a signing secret has a space, a line break or a quote in it")
    parts = [part.split("=", 1) for part in header.split(",") if "=" in part]
    times = [value for name, value in parts if name == "t"]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]) or abs(time.time() - int(times[0])) > tolerance:
        return False
    message = times[0].encode() + b"." + body
    digests = [hmac.new(secret.encode(), message, hashlib.sha256).hexdigest().encode() for secret in secrets if secret]
    return any([hmac.compare_digest(value.encode(), digest) for name, value in parts if name == "v1" for digest in digests])
