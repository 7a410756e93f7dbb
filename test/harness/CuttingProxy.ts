import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"
import type { Randomness } from "../faults/Randomness.ts"
import { listening } from "./Listening.ts"

/** What is done to a connection at the next thing that its client says: it never arrives, or its answer gets lost. */
export type Cut = "before" | "after"

export type CuttingProxy = Effect.Effect.Success<ReturnType<typeof cuttingProxy>>

/**
 * A TCP proxy on loopback, which passes everything on to this port of loopback, or that of this URL, and cuts
 * connections in the middle of a conversation. It ends with the scope.
 */
export const cuttingProxy = (target: number | string) =>
  Effect.gen(function* () {
    const onwards = typeof target === "number" ? target : Number(new URL(target).port)
    const open = new Set<Socket>()
    let cuts = 0
    let isCut = false
    let isStalled = false
    let heldBack: string | undefined
    let chance: { readonly probability: number; readonly random: Randomness } | undefined
    let awaited: { readonly text: string; readonly cut: Cut } | undefined

    const cutFor = (said: Buffer): Cut | undefined => {
      if (awaited !== undefined && said.includes(awaited.text)) {
        const { cut } = awaited
        awaited = undefined
        return cut
      }
      return chance?.random.isTrue(chance.probability) ? chance.random.oneOf(["before", "after"]) : undefined
    }

    const server = createServer({ noDelay: true }, (client) => {
      if (isCut) return void client.destroy()
      const onward = connect({ port: onwards, host: "127.0.0.1", noDelay: true })
      let isAnswerLost = false
      const end = () => {
        open.delete(client)
        client.destroy()
        onward.destroy()
      }
      open.add(client)
      for (const socket of [client, onward]) socket.on("error", end).on("close", end)
      client.on("data", (said) => {
        if (isStalled) return
        const cut = isAnswerLost ? undefined : cutFor(said)
        if (cut !== undefined) {
          isAnswerLost = true
          cuts += 1
        }
        if (cut === "before") end()
        else onward.write(said)
      })
      onward.on("data", (answer) => {
        if (isStalled) return
        if (isAnswerLost) end()
        else if (heldBack === undefined || !answer.includes(heldBack)) client.write(answer)
      })
    })
    const port = yield* listening(server)
    return {
      port,
      url: `http://127.0.0.1:${port}`,
      open: () => open.size,
      cuts: () => cuts,
      /** While the effect runs, each thing that a client says is cut with this probability. */
      cutting: <A, E, R>(options: NonNullable<typeof chance>, effect: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          chance = options
          return effect
        }).pipe(Effect.ensuring(Effect.sync(() => (chance = undefined)))),
      /** While the effect runs, answers that hold this text don't arrive. */
      holdingBack: <A, E, R>(text: string, effect: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          heldBack = text
          return effect
        }).pipe(Effect.ensuring(Effect.sync(() => (heldBack = undefined)))),
      cut: () => {
        isCut = true
        for (const socket of open) socket.destroy()
      },
      mend: () => {
        isCut = false
      },
      /** Passes nothing on any more, and closes nothing: whoever waits for an answer hears nothing. */
      stall: () => {
        isStalled = true
      },
      /** Cuts once, at the next thing said that holds this text. */
      cutAt: (text: string, cut: Cut) => {
        awaited = { text, cut }
      }
    }
  })
