// Reads cases as lines of JSON, and writes for each whether the provider's library takes its delivery for genuine.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/stripe/stripe-go/v84/webhook"
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
		body, header, secret := delivery.Body, delivery.Header, delivery.Secrets[0]
		err := webhook.ValidatePayload(body, header, secret)
		fmt.Println(err == nil)
		if _, refused := webhook.ConstructEvent(body, header, secret); refused == nil {
			panic("ConstructEvent takes events that are not the provider's: the README says that it doesn't")
		}
	}
}
