async def app(scope, receive, send):
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    path = scope["path"]
    headers = {
        "/200": [(b"content-length", b"2")],
        "/204-length": [(b"content-length", b"0")],
        "/close": [(b"content-length", b"2"), (b"connection", b"close")],
    }.get(path, [])
    status = 204 if path.startswith("/204") else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if path == "/chunked":
        await send({"type": "http.response.body", "body": b"o", "more_body": True})
    body = b"" if status == 204 else b"k" if path == "/chunked" else b"ok"
    await send({"type": "http.response.body", "body": body})
