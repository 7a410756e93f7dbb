import { connect } from "node:net"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Answer } from "../../harness/TestService.ts"

/** Codes whose message says of each field why it was refused. */
const reasoned = new Set(["validation_failed", "integration_filter_invalid", "integration_filter_unknown"])

/** A message that names a field and says something of it, unless so much is wrong that not all of it fits. */
const expectReason = (error: string, field: string, context: string): void => {
  if (!/`fields` names \d+ more/.test(error)) expect(error, context).toContain(field.slice(0, 79))
}

/** The documented form of a failure: these keys and no others, under the id of the response's own header. */
export const expectFailure = (
  answer: Pick<Answer, "status" | "headers" | "text" | "json">,
  expected: { readonly status: number; readonly code: string; readonly fields?: ReadonlyArray<string> },
  what = ""
): void => {
  const context = `${what} ${answer.status} ${answer.text.slice(0, 300)}`
  expect(answer.status, context).toBe(expected.status)
  expect(answer.headers.get("content-type"), context).toBe("application/json")
  const { code, error, fields, requestId, ...rest } = answer.json
  expect(rest, context).toEqual({})
  expect(code, context).toBe(expected.code)
  expect(typeof error === "string" && error.length > 0, context).toBe(true)
  expect(Array.isArray(fields), context).toBe(true)
  expect(requestId, context).toMatch(/^req_[0-9a-f]{32}$/)
  expect(answer.headers.get("request-id"), context).toBe(requestId)
  expect(answer.headers.get("link"), context).toMatch(/^<\/docs\/errors#[a-z_]+>; rel="help"$/)
  if (reasoned.has(expected.code) && Array.isArray(fields)) {
    for (const field of fields) expectReason(String(error), String(field), context)
  }
  if (expected.fields !== undefined) {
    expect(Array.isArray(fields) ? fields.toSorted() : fields, context).toEqual(expected.fields.toSorted())
  }
}

/** What a refused request is expected to be answered; any fields unless they are given. */
export const refusedWith = (status: number, code: string, fields?: ReadonlyArray<string>) =>
  fields === undefined ? { status, code } : { status, code, fields }

/** Bytes sent as they are over a plain connection; answers what came back, read as HTTP, once the server closes. */
export const sendBytes = (baseUrl: string, bytes: string | Uint8Array): Effect.Effect<Answer> =>
  Effect.async((resume) => {
    const socket = connect(Number(new URL(baseUrl).port), "127.0.0.1", () => socket.write(bytes))
    const chunks: Array<Buffer> = []
    socket.on("data", (chunk: Buffer) => chunks.push(chunk))
    // A reset after the answer is the server's way of not reading the rest
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed(parseAnswer(Buffer.concat(chunks).toString("utf8")))))
    return Effect.sync(() => socket.destroy())
  })

const parseAnswer = (received: string): Answer => {
  const [head = "", ...body] = received.split("\r\n\r\n")
  const [statusLine = "", ...lines] = head.split("\r\n")
  const text = body.join("\r\n\r\n")
  return {
    status: Number(statusLine.split(" ")[1] ?? 0),
    headers: new Headers(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(":")
        return [line.slice(0, colon), line.slice(colon + 1).trim()]
      })
    ),
    text,
    get json() {
      // The tests look into it field by field
      return JSON.parse(text) as Record<string, unknown>
    }
  }
}
