package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/204-length":
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(204)
			return
		case "/204":
			w.WriteHeader(204)
			return
		case "/103":
			w.Header().Set("Link", "</a>; rel=preload")
			w.WriteHeader(103)
		case "/chunked":
			io.WriteString(w, "o")
			w.(http.Flusher).Flush()
			io.WriteString(w, "k")
			return
		case "/close":
			w.Header().Set("Connection", "close")
		}
		io.WriteString(w, "ok")
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
