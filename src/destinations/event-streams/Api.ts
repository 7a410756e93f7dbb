import { HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { text } from "../../platform/bounds/Text.ts"
import { errorSchema, RateLimitExceeded, TestEnvironmentRequired } from "../../platform/errors/Errors.ts"
import { BooleanFromQuery, optional, strict } from "../../platform/kit/Request.ts"
import { integrationGet, integrationGroup } from "../endpoints/Integrations.ts"

export const StreamCursor = text({
  min: 1,
  max: 16,
  pattern: /^\d+$/,
  rule: "must be the id of a message of the stream: 1 to 16 digits"
}).annotations({ description: "The id of the last message received, to resume after it" })

export const StreamQuery = strict(
  Schema.Struct({
    types: optional(
      text({
        min: 1,
        max: 2000,
        pattern: /^[a-z0-9_.]+(?:,[a-z0-9_.]+)*$/,
        rule: "must be event types of the catalog, separated by commas"
      }).annotations({ description: "Event types, separated by commas. Default: all" })
    ),
    after: optional(StreamCursor),
    follow: optional(BooleanFromQuery, "false ends the stream once everything so far was sent. Default true")
  })
)

export const eventStreamType = "text/event-stream"

export class EventStreamApi extends integrationGroup(
  "eventStream",
  "The sandbox's events as a stream, for a developer's machine"
)
  .add(
    integrationGet("open", "/event-stream", "Stream the sandbox's events as server-sent events")
      .setUrlParams(StreamQuery)
      .addSuccess(
        HttpApiSchema.Text({ contentType: eventStreamType }).annotations({
          description: "Server-sent events: the envelopes, one for each message"
        })
      )
      .addError(errorSchema(TestEnvironmentRequired))
      .annotate(
        OpenApi.Description,
        "Every event of the organization's sandbox from now on, whether or not an endpoint takes it, as `data` of a message without a name. The first message is `ready`; a comment comes at least every 10 seconds. Resume after a break with the last message's id in `Last-Event-ID` or `after`: nothing within the last 24 hours is lost, and events of the last seconds may be sent again, so deduplicate by their `id`. If that message is older, `ready` has `look_back_exceeded`. At most 5 streams per organization and process. The stream ends when the process stops, when the key is revoked, and after a minute for a signed-in person: resume it. Only in the sandbox."
      )
  )
  .addError(errorSchema(RateLimitExceeded)) {}
