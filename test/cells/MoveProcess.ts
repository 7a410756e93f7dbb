import { spawn } from "node:child_process"
import { Effect, Option, Redacted } from "effect"
import type { OrganizationId } from "../../src/kit/Ids.ts"
import { eventually } from "../harness/Eventually.ts"
import { program } from "../harness/Program.ts"
import { type CellName, masterKeySetting, TwoCells } from "./TwoCells.ts"

/** `organizations move` as a process of its own. */
export interface MoveProcess {
  /** What it has told so far. */
  readonly told: () => string
  /** Waits until it has told this; fails the test if it ends without. */
  readonly until: (text: string) => Effect.Effect<void>
  /** Ends it as a crash does. */
  readonly kill: Effect.Effect<void>
  /** Its exit code; null if it was killed. */
  readonly ended: Effect.Effect<number | null>
}

/** Starts the command; it is killed with the scope. */
export const startMove = (id: OrganizationId, to: CellName, ...options: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { cells, directoryUrl } = yield* TwoCells
    const environment = {
      PATH: process.env["PATH"] ?? "",
      HOME: process.env["HOME"] ?? "",
      DIRECTORY_URL: Redacted.value(directoryUrl),
      CELL_DATABASE_URLS: Object.entries(cells)
        .map(([name, { url }]) => `${name}=${Redacted.value(url)}`)
        .join(","),
      MASTER_KEYS: masterKeySetting
    }
    return yield* Effect.acquireRelease(
      Effect.sync((): MoveProcess => {
        const child = spawn(
          process.execPath,
          [...program("src/cli/main.ts"), "organizations", "move", id, "--to", to, ...options],
          { env: environment, stdio: ["ignore", "pipe", "pipe"] }
        )
        let told = ""
        for (const stream of [child.stdout, child.stderr]) {
          stream.setEncoding("utf8").on("data", (text: string) => {
            told += text
          })
        }
        let code: number | null | undefined
        const closed = new Promise<number | null>((resolve) =>
          child.once("close", (status) => {
            code = status
            resolve(status)
          })
        )
        const ended = Effect.promise(() => closed)
        return {
          told: () => told,
          until: (text) =>
            eventually(
              `the move says ${text}`,
              Effect.sync(() => (told.includes(text) || code !== undefined ? Option.some(told) : Option.none())),
              120_000
            ).pipe(
              Effect.filterOrDie(
                () => told.includes(text),
                () => new Error(`The move ended with ${code} before it said "${text}": ${told}`)
              ),
              Effect.asVoid,
              Effect.orDie
            ),
          kill: Effect.zipRight(
            Effect.sync(() => child.kill("SIGKILL")),
            Effect.asVoid(ended)
          ),
          ended
        }
      }),
      ({ kill }) => kill
    )
  })

/** Runs it to its end; answers its exit code and what it has told. */
export const runMove = (id: OrganizationId, to: CellName, ...options: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ended, told } = yield* startMove(id, to, ...options)
      const code = yield* ended
      return { code, told: told() }
    })
  )
