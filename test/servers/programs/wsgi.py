def app(environ, start_response):
    environ["wsgi.input"].read()
    path = environ["PATH_INFO"]
    headers = {
        "/200": [("Content-Length", "2")],
        "/204-length": [("Content-Length", "0")],
        "/close": [("Content-Length", "2"), ("Connection", "close")],
    }.get(path, [])
    start_response("204 No Content" if path.startswith("/204") else "200 OK", headers)
    return [] if path.startswith("/204") else [b"o", b"k"]
