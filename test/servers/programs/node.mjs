import { createServer } from "node:http"

const answers = {
  "/200": (response) => response.end("ok"),
  "/204": (response) => response.writeHead(204).end(),
  "/204-length": (response) => response.writeHead(204, { "content-length": 0 }).end(),
  "/103": (response) => response.writeEarlyHints({ link: "</a>; rel=preload" }, () => response.end("ok")),
  "/chunked": (response) => {
    response.write("o")
    response.end("k")
  },
  "/close": (response) => response.writeHead(200, { connection: "close" }).end("ok")
}

createServer((request, response) => request.resume().on("end", () => answers[request.url](response))).listen(
  Number(process.argv[2]),
  "127.0.0.1"
)
