/**
 * Receiver code for a destination's events, with the organization and environment filled in. The secret comes from the
 * program's environment, never from its source. The verifiers are those of the guide "Verifying in other languages"; a
 * test compares them. Pure.
 */

export interface Snippet {
  readonly id: "node" | "python" | "go" | "ruby" | "php"
  readonly label: string
  /** The file's usual name. */
  readonly file: string
  readonly code: string
}

export interface SnippetFacts {
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

const pythonVerifier = String.raw`import hashlib, hmac, re, time

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
`

const python = ({ livemode, organizationId }: SnippetFacts): string => `${pythonVerifier}
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

const goVerifier = String.raw`func VerifyWebhook(body []byte, header string, secrets []string, tolerance int64) (bool, error) {
	for _, secret := range secrets {
		if strings.ContainsAny(secret, " \t\r\n\"'") {
			return false, errors.New("a signing secret has a space, a line break or a quote in it")
		}
	}
	parts := strings.Split(header, ",")
	timestamp, times := "", 0
	for _, part := range parts {
		if value, found := strings.CutPrefix(part, "t="); found {
			timestamp, times = value, times+1
		}
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if off := time.Now().Unix() - int64(seconds); err != nil || times != 1 || off > tolerance || off < -tolerance {
		return false, nil
	}
	genuine := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(append([]byte(timestamp+"."), body...))
		digest := []byte(hex.EncodeToString(mac.Sum(nil)))
		for _, part := range parts {
			if value, found := strings.CutPrefix(part, "v1="); found && secret != "" && hmac.Equal([]byte(value), digest) {
				genuine = true
			}
		}
	}
	return genuine, nil
}
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

${goVerifier}
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

const rubyVerifier = String.raw`require "openssl"

def verify_webhook(body, header, secrets, tolerance = 300)
  raise ArgumentError, "a signing secret has a space, a line break or a quote in it" if secrets.any?(/[\s"']/)
  parts = header.b.split(",").map { |part| part.split("=", 2) }
  times = parts.filter_map { |name, value| value if name == "t" }
  return false unless times.size == 1 && times[0].match?(/\A[0-9]{1,12}\z/)
  return false if (Time.now.to_i - times[0].to_i).abs > tolerance
  digests = secrets.reject(&:empty?).map { |secret| OpenSSL::HMAC.hexdigest("SHA256", secret, "#{times[0]}.".b + body.b) }
  given = parts.filter_map { |name, value| value if name == "v1" }
  given.product(digests).map { |value, digest| OpenSSL.secure_compare(value, digest) }.any?
end
`

const ruby = ({ livemode, organizationId }: SnippetFacts): string => `${rubyVerifier}
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

const phpVerifier = String.raw`function verify_webhook(string $body, string $header, array $secrets, int $tolerance = 300): bool
{
    if (preg_grep('/[\s"\']/', $secrets)) throw new InvalidArgumentException('a signing secret has a space, a line break or a quote in it');
    $parts = array_map(fn (string $part): array => explode('=', $part, 2) + ['', ''], explode(',', $header));
    $times = array_values(array_filter($parts, fn (array $part): bool => $part[0] === 't'));
    if (count($times) !== 1 || !preg_match('/\A[0-9]{1,12}\z/', $times[0][1])) return false;
    $timestamp = $times[0][1];
    $genuine = false;
    foreach (array_filter($secrets, fn (string $secret): bool => $secret !== '') as $secret) {
        $digest = hash_hmac('sha256', "$timestamp.$body", $secret);
        foreach ($parts as [$name, $value]) $genuine = ($name === 'v1' && hash_equals($digest, $value)) || $genuine;
    }
    return $genuine && abs(time() - (int) $timestamp) <= $tolerance;
}
`

const php = ({ livemode, organizationId }: SnippetFacts): string => `<?php

${phpVerifier}
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

/** The guide's verifiers, for the test that compares them. */
export const verifiers = { python: pythonVerifier, go: goVerifier, ruby: rubyVerifier, php: phpVerifier }

export const snippetsFor = (facts: SnippetFacts): ReadonlyArray<Snippet> => [
  { id: "node", label: "Node", file: "receiver.mjs", code: node(facts) },
  { id: "python", label: "Python", file: "receiver.py", code: python(facts) },
  { id: "go", label: "Go", file: "receiver.go", code: go(facts) },
  { id: "ruby", label: "Ruby", file: "receiver.rb", code: ruby(facts) },
  { id: "php", label: "PHP", file: "receiver.php", code: php(facts) }
]
