/** The introduction of the OpenAPI document and its page, in Markdown. */
export const introduction = `Payments on top of one connected provider account per organization and environment, and signed webhook events.

**Keys.** Send an API key in the header \`x-api-key\`. It belongs to one organization, whose id is in every path, and to one environment: \`pk_test_…\` is the sandbox, \`pk_live_…\` moves money. Keep it on your server.

**First payment.** Create a product, a price for it, and a checkout session with that price; send the payer to the session's \`url\`. The examples below work unchanged in the sandbox, with your organization's id and the ids that the previous calls returned.

**Confirmation.** Neither opening the page nor returning from it confirms a payment. The signed event \`payment.succeeded\` does: register an endpoint, verify each delivery's signature, and deduplicate by the event's \`id\`. All events and their headers are under **events**; their JSON Schemas are at \`/schemas/events.json\`.

**Repeats.** Operations that move money or create something need an \`Idempotency-Key\`: a new one per intended effect, the same one when you repeat after a lost answer.

**Guides.** [The guides](/docs) show how to start, receive events and match them to orders.

**Errors.** Every failure answers \`{error, code, fields, requestId}\`. Decide by \`code\`; [the error reference](/docs/errors) says what to do about each.

**Compatibility.** Answers and events may get further fields; accept them. Unknown fields in requests are refused. The API's version is in its paths, \`/v2\`; this document's is the service's.`
