import verifiers from "../../api/verifiers.json" with { type: "json" }

/**
 * Receiver code for a destination's events, with the organization and environment filled in. The secret comes from the
 * program's environment, never from its source. The verifiers are those of the guide "Verifying in other languages". Pure.
 */

interface Snippet {
  readonly id: "node" | "python" | "go" | "ruby" | "php"
  readonly label: string
  /** The file's usual name. */
  readonly file: string
  readonly code: string
}

interface SnippetFacts {
  /** Where this service offers the consumer's kit. Its name is in no public registry. */
  readonly kitUrl: string
  readonly organizationId: string
  readonly livemode: boolean
}

/** The program's environment file: the only place that holds the secret. */
export const environmentFile = (secret: string): string => `WEBHOOK_SECRET=${secret}\n`

const node = ({ kitUrl, livemode, organizationId }: SnippetFacts): string => `// npm install ${kitUrl}
import { createServer } from "node:http"
import { nodeWebhookHandler } from "connected-payments-webhooks"

const receive = nodeWebhookHandler({
  secret: process.env.WEBHOOK_SECRET ?? "", // a list of two while one is rotated
  organizationId: "${organizationId}",
  livemode: ${livemode}, // ${livemode ? "production" : "the sandbox; true in production"}
  onEvent: async (event) => {
    if (event.test === true) return // a synthetic event proves nothing
    // Store the event's id and its effect here, each event once, before this returns
    console.log(event.type, event.id)
  }
})

createServer((request, response) => {
  if (request.url === "/webhooks") void receive(request, response)
  else response.writeHead(404).end()
}).listen(9000, "127.0.0.1")
`

const python = ({ livemode, organizationId }: SnippetFacts): string => `${verifiers.python}
import json, os

def receive(body: bytes, header: str) -> int:
    """Takes the raw body and Service-Signature; returns the HTTP status to answer."""
    if not verify_webhook(body, header, [os.environ["WEBHOOK_SECRET"]]):  # two secrets while one is rotated
        return 400
    event = json.loads(body)
    mine = event["organization_id"] == "${organizationId}" and event["livemode"] is ${livemode ? "True" : "False"}
    if event["version"] != 1 or not mine:
        return 400
    if event.get("test"):
        return 204  # a synthetic event proves nothing
    # Store the event's id and its effect here, each event once, before this returns
    return 204
`

const go = ({ livemode, organizationId }: SnippetFacts): string => `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

${verifiers.go}
// Event is the part of an event that every type has; Data depends on the type.
type Event struct {
	ID             string          \`json:"id"\`
	Type           string          \`json:"type"\`
	Version        int             \`json:"version"\`
	Livemode       bool            \`json:"livemode"\`
	OrganizationID string          \`json:"organization_id"\`
	Test           bool            \`json:"test"\`
	Data           json.RawMessage \`json:"data"\`
}

// Receive takes the raw body and Service-Signature, and returns the HTTP status to answer.
func Receive(body []byte, header string) int {
	secrets := []string{os.Getenv("WEBHOOK_SECRET")} // two secrets while one is rotated
	var event Event
	genuine, err := VerifyWebhook(body, header, secrets, 300)
	if err != nil {
		return 500 // the secret of this program is not as the service shows it
	}
	if !genuine || json.Unmarshal(body, &event) != nil {
		return 400
	}
	mine := event.OrganizationID == "${organizationId}" && ${livemode ? "" : "!"}event.Livemode
	if event.Version != 1 || !mine {
		return 400
	}
	if event.Test {
		return 204 // a synthetic event proves nothing
	}
	// Store the event's ID and its effect here, each event once, before this returns
	return 204
}
`

const ruby = ({ livemode, organizationId }: SnippetFacts): string => `${verifiers.ruby}
require "json"

# Takes the raw body and Service-Signature; returns the HTTP status to answer
def receive(body, header)
  return 400 unless verify_webhook(body, header, [ENV.fetch("WEBHOOK_SECRET")]) # two secrets while one is rotated
  event = JSON.parse(body)
  mine = event["organization_id"] == "${organizationId}" && event["livemode"] == ${livemode}
  return 400 unless event["version"] == 1 && mine
  return 204 if event["test"] # a synthetic event proves nothing
  # Store the event's id and its effect here, each event once, before this returns
  204
end
`

const php = ({ livemode, organizationId }: SnippetFacts): string => `<?php

${verifiers.php}
/** Takes the raw body and Service-Signature; returns the HTTP status to answer. */
function receive(string $body, string $header): int
{
    $secrets = [getenv('WEBHOOK_SECRET') ?: '']; // two secrets while one is rotated
    if (!verify_webhook($body, $header, $secrets)) return 400;
    $event = json_decode($body, true);
    $mine = $event['organization_id'] === '${organizationId}' && $event['livemode'] === ${livemode};
    if ($event['version'] !== 1 || !$mine) return 400;
    if ($event['test'] ?? false) return 204; // a synthetic event proves nothing
    // Store the event's id and its effect here, each event once, before this returns
    return 204;
}
`

export const snippetsFor = (facts: SnippetFacts): ReadonlyArray<Snippet> => [
  { id: "node", label: "Node", file: "receiver.mjs", code: node(facts) },
  { id: "python", label: "Python", file: "receiver.py", code: python(facts) },
  { id: "go", label: "Go", file: "receiver.go", code: go(facts) },
  { id: "ruby", label: "Ruby", file: "receiver.rb", code: ruby(facts) },
  { id: "php", label: "PHP", file: "receiver.php", code: php(facts) }
]
