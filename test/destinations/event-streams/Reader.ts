import { request } from "node:http"
import { Effect, type Scope } from "effect"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { TestService } from "../../harness/TestService.ts"
import type { Tenant } from "../../inbound/Notifications.ts"

export interface ReadMessage {
  readonly id: string
  readonly name: string
  readonly data: Record<string, unknown>
}

export interface StreamReader {
  readonly status: () => number
  readonly messages: ReadonlyArray<ReadMessage>
  readonly events: () => ReadonlyArray<string>
  /** The last id that came, heartbeats' included. */
  readonly place: () => string
  readonly ended: () => boolean
  readonly pause: () => void
  /** Cuts the connection, as a cable does. */
  readonly cut: () => void
}

/** Reads a stream, as a client that knows the standard does; the connection ends with the scope. */
export const readStream = (
  baseUrl: string,
  path: string,
  headers: Readonly<Record<string, string>>
): Effect.Effect<StreamReader, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const messages: Array<ReadMessage> = []
      let status = 0
      let place = ""
      let rest = ""
      let ended = false
      const sent = request(`${baseUrl}${path}`, { agent: false, headers: { ...headers } }, (response) => {
        status = response.statusCode ?? 0
        response.setEncoding("utf8").on("data", (piece: string) => {
          const blocks = (rest + piece).split("\n\n")
          rest = blocks.pop() ?? ""
          for (const block of blocks) {
            const lines = block.split("\n")
            const fieldOf = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
            place = fieldOf("id") ?? place
            const data = fieldOf("data")
            if (data !== undefined) messages.push({ id: place, name: fieldOf("event") ?? "", data: JSON.parse(data) })
          }
        })
        response.on("close", () => {
          ended = true
        })
        response.on("error", () => {})
      })
      sent.on("error", () => {
        ended = true
      })
      sent.end()
      return {
        status: () => status,
        messages,
        events: () => messages.filter(({ name }) => name === "").map(({ data }) => String(data["id"])),
        place: () => place,
        ended: () => ended,
        pause: () => sent.socket?.pause(),
        cut: () => sent.destroy()
      }
    }),
    ({ cut }) => Effect.sync(cut)
  )

export const pathOf = ({ id }: Pick<Tenant, "id">, query = "") =>
  `/v2/organizations/${id}/integrations/event-stream${query}`

export const listen = (tenant: Tenant, options: { readonly query?: string; readonly after?: string } = {}) =>
  Effect.gen(function* () {
    const { baseUrl } = yield* TestService
    const reader = yield* readStream(baseUrl, pathOf(tenant, options.query), {
      "x-api-key": tenant.key,
      ...(options.after === undefined ? {} : { "last-event-id": options.after })
    })
    yield* eventuallyTrue("the stream is ready", () => reader.messages[0]?.name === "ready")
    return reader
  })
