// Reads cases as lines of JSON, and writes for each whether its delivery is genuine, or that its secret is wrong.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	lines := json.NewDecoder(os.Stdin)
	for lines.More() {
		var delivery struct {
			Body    []byte
			Header  string
			Secrets []string
		}
		if err := lines.Decode(&delivery); err != nil {
			panic(err)
		}
		genuine, err := VerifyWebhook(delivery.Body, delivery.Header, delivery.Secrets, 300)
		if err != nil {
			fmt.Println("error")
			continue
		}
		fmt.Println(genuine)
	}
}
