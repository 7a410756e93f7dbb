/** The `webhooks` of the OpenAPI document. Pure. */
import { Predicate } from "effect"
import { type EventType, eventTypes } from "./Catalog.ts"
import {
  deliveryIdHeaderName,
  refusedHeaderName,
  refusedReasons,
  signatureHeaderName,
  webhookIdHeaderName,
  webhookSignatureHeaderName,
  webhookTimestampHeaderName
} from "./DeliveryHeaders.ts"
import { eventSchemaComponents, eventSchemaPath, type JsonSchema } from "./JsonSchemas.ts"
import { exampleEvent } from "./Samples.ts"

const definitionPath = "#/components/schemas/"

const parameters = [
  {
    name: signatureHeaderName,
    in: "header",
    required: true,
    description:
      "`t=<Unix seconds>,v1=<hex>`: HMAC-SHA256 with the whole signing secret over `<t>.<body>`, the bytes as they arrive. For 24 hours after a rotation it carries two `v1`; any that matches makes it valid. Accept at most five minutes between `t` and now.",
    schema: { type: "string", pattern: "^t=\\d+(,v1=[0-9a-f]{64})+$" }
  },
  {
    name: deliveryIdHeaderName,
    in: "header",
    required: true,
    description: "The delivery's id: the same on every attempt, and different from the event's.",
    schema: { type: "string", format: "uuid" }
  },
  {
    name: webhookIdHeaderName,
    in: "header",
    required: true,
    description:
      "The event's `id`, for the libraries of Standard Webhooks, which verify this header and the two below.",
    schema: { type: "string" }
  },
  {
    name: webhookTimestampHeaderName,
    in: "header",
    required: true,
    description: "The time of the attempt in Unix seconds: `t` of `Service-Signature`.",
    schema: { type: "string", pattern: "^\\d+$" }
  },
  {
    name: webhookSignatureHeaderName,
    in: "header",
    required: true,
    description:
      "`v1,<base64>`: HMAC-SHA256 with the whole signing secret over `<webhook-id>.<webhook-timestamp>.<body>`. For 24 hours after a rotation there are two, separated by a space; any that matches makes it valid.",
    schema: { type: "string", pattern: "^v1,[0-9A-Za-z+\\/]{43}=( v1,[0-9A-Za-z+\\/]{43}=)*$" }
  }
]

const responses = {
  "2XX": { description: "Received: receipt and effect are stored. The body is ignored." },
  "408": { description: "Not received: sent again later." },
  "429": { description: "Not received: sent again later; `Retry-After` is respected." },
  "503": { description: "Not received: sent again later; `Retry-After` is respected. The same for every other 5xx." },
  "4XX": {
    description: "Refused: the delivery has failed, and is sent again only on request.",
    headers: {
      [refusedHeaderName]: {
        description:
          "Why it was refused. The attempt's error code is then `consumer_refused_<reason>`; any other value is ignored.",
        schema: { type: "string", enum: refusedReasons }
      }
    }
  },
  default: { description: "Redirects and all other answers are final: the delivery has failed." }
}

const notice = "Delivered at least once, in no order: deduplicate by `id`, and guard the effect by the object's own id."

/** The webhook of one type. Its operation id has a prefix that no operation of the API has. */
const webhook = (type: EventType, description: string, schema: JsonSchema) => ({
  post: {
    operationId: `event.${type}`,
    summary: description.split(". ", 1)[0]?.replace(/\.$/, ""),
    description: `${description} ${notice} Its own schema: \`${eventSchemaPath(type)}\`.`,
    tags: ["Webhooks"],
    security: [],
    parameters,
    requestBody: { required: true, content: { "application/json": { schema, example: exampleEvent(type) } } },
    responses
  }
})

const tag = { name: "Webhooks", description: "What the service sends to your endpoints, signed" }

const recordAt = (root: Readonly<Record<string, unknown>>, key: string): Readonly<Record<string, unknown>> => {
  const value = root[key]
  return Predicate.isRecord(value) ? value : {}
}

/** Definitions that both documents have are the same and left unchanged. */
export const documentWebhooks = (spec: Record<string, unknown>): Record<string, unknown> => {
  const { definitions, referenceTo } = eventSchemaComponents(definitionPath)
  const components = recordAt(spec, "components")
  const tags: unknown = spec["tags"]
  return {
    ...spec,
    components: { ...components, schemas: { ...definitions, ...recordAt(components, "schemas") } },
    tags: [...(Array.isArray(tags) ? tags : []), tag],
    webhooks: Object.fromEntries(
      eventTypes.map(({ description, type }) => [type, webhook(type, description, referenceTo(type))])
    )
  }
}
