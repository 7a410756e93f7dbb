import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { listening } from "../harness/Listening.ts"
import type { Randomness } from "./Randomness.ts"

/** What is done to a connection at the next thing that its client says. */
export type Cut =
  /** What was said never arrives. */
  | "before"
  /** It arrives and is done, and the answer gets lost. */
  | "after"

/** A TCP proxy between a service and its database, which cuts connections in the middle of a conversation. */
export interface CuttingProxy {
  readonly port: number
  readonly cuts: () => number
  /** While the effect runs, each thing that a client says is cut with this probability. */
  readonly cutting: <A, E, R>(
    options: { readonly probability: number; readonly random: Randomness },
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** While the effect runs, answers that hold this text don't arrive. */
  readonly holdingBack: <A, E, R>(text: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly sever: () => void
  readonly restore: () => void
  /** Cuts once, at the next thing said that holds this text. */
  readonly cutAt: (text: string, cut: Cut) => void
}

/** Listens on loopback and passes on to the port; it ends with the scope. */
export const cuttingProxy = (target: number): Effect.Effect<CuttingProxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const open = new Set<Socket>()
    let cuts = 0
    let isSevered = false
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
      if (isSevered) return void client.destroy()
      const database = connect({ port: target, host: "127.0.0.1", noDelay: true })
      let isCut = false
      const end = () => {
        open.delete(client)
        client.destroy()
        database.destroy()
      }
      open.add(client)
      for (const socket of [client, database]) socket.on("error", end).on("close", end)
      client.on("data", (said) => {
        const cut = isCut ? undefined : cutFor(said)
        if (cut !== undefined) {
          isCut = true
          cuts += 1
        }
        if (cut === "before") end()
        else database.write(said)
      })
      database.on("data", (answer) => {
        if (isCut) end()
        else if (heldBack === undefined || !answer.includes(heldBack)) client.write(answer)
      })
    })
    return {
      port: yield* listening(server),
      cuts: () => cuts,
      cutting: (options, effect) =>
        Effect.suspend(() => {
          chance = options
          return effect
        }).pipe(Effect.ensuring(Effect.sync(() => (chance = undefined)))),
      holdingBack: (text, effect) =>
        Effect.suspend(() => {
          heldBack = text
          return effect
        }).pipe(Effect.ensuring(Effect.sync(() => (heldBack = undefined)))),
      sever: () => {
        isSevered = true
        for (const socket of open) socket.destroy()
      },
      restore: () => {
        isSevered = false
      },
      cutAt: (text, cut) => {
        awaited = { text, cut }
      }
    }
  })
