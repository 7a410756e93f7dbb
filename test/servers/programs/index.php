<?php
file_get_contents("php://input");
switch ($_SERVER["REQUEST_URI"]) {
    case "/204-length":
        header("Content-Length: 0");
    case "/204":
        http_response_code(204);
        return;
    case "/chunked":
        echo "o";
        flush();
        echo "k";
        return;
    case "/close":
        header("Connection: close");
}
header("Content-Length: 2");
echo "ok";
