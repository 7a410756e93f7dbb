import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { Effect, type Scope } from "effect"

/** Programs of others that tests use if the machine has them, such as PgBouncer and nginx. */

/** The account for programs that refuse to run as root: nobody's if the tests are run by root, otherwise the same. */
export const unprivileged = { uid: process.getuid?.() || 65_534, gid: process.getgid?.() || 65_534 }

/** The first of these commands that answers to `arguments_`; undefined if none is installed. */
export const installed = (commands: ReadonlyArray<string>, arguments_: ReadonlyArray<string>): string | undefined =>
  commands.find((command) => spawnSync(command, arguments_, { stdio: "ignore" }).status === 0)

/**
 * Starts a program, which is killed when the scope ends.
 *
 * @returns what it has written so far, on both of its streams
 */
export const startInstalled = (
  command: string,
  arguments_: ReadonlyArray<string>,
  options: { readonly uid?: number; readonly gid?: number } = {}
): Effect.Effect<() => string, never, Scope.Scope> => {
  let written = ""
  return Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(command, arguments_, { ...options, stdio: ["ignore", "pipe", "pipe"] })
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk: Buffer) => {
          written += chunk.toString()
        })
      }
      return child
    }),
    (child) =>
      Effect.promise(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, "exit")
        child.kill("SIGKILL")
        await ended
      })
  ).pipe(Effect.as(() => written))
}
