import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, FastCheck } from "effect"
import { readMessage } from "../../src/server/Body.ts"

const limit = 64 * 1024

/** Parts of a body, from a few bytes to several pages, and whether its sender leaves before the end. */
const body = FastCheck.record({
  parts: FastCheck.array(FastCheck.nat({ max: 20_000 }), { minLength: 1, maxLength: 8 }),
  leaves: FastCheck.boolean()
})

describe("bodies that arrive in parts, at the same time", () => {
  it("are read as they were sent, whatever became of others before and beside them, and their memory is freed", async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.array(body, { minLength: 2, maxLength: 12 }), async (bodies) => {
        const sent = bodies.map(({ leaves, parts: lengths }, n) => {
          const parts = lengths.map((length, m) => Buffer.alloc(length, 8 * n + m + 1))
          const several = lengths.filter((length) => length > 0).length > 1
          return { leaves, message: new IncomingMessage(new Socket()), parts, several, whole: Buffer.concat(parts) }
        })
        const read = sent.map(({ message }) => Effect.runPromiseExit(readMessage(message, limit)))
        for (let n = 0; n < 8; n++) {
          for (const { message, parts } of sent) {
            const part = parts[n]
            if (part !== undefined && part.length > 0) message.emit("data", part)
          }
        }
        for (const { leaves, message } of sent) message.emit(leaves ? "close" : "end")
        for (const [n, { leaves, parts, several, whole }] of sent.entries()) {
          const exit = await read[n]
          const expected = !leaves && whole.length <= limit ? Exit.succeed(whole.toString("hex")) : "refused"
          expect(
            exit !== undefined && Exit.isSuccess(exit) ? Exit.succeed(exit.value.toString("hex")) : "refused"
          ).toEqual(expected)
          // What was refused, or copied, is freed at once
          if (expected === "refused" || several) expect(parts.map(({ length }) => length)).toEqual(parts.map(() => 0))
        }
      }),
      { numRuns: 200 }
    )
  })
})
