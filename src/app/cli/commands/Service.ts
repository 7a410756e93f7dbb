import { Effect, FiberRef, HashSet, Logger, Schema } from "effect"
import { runService } from "../../Run.ts"
import { type Command, command, process as running } from "../Command.ts"
import { applyMigrations, databaseAsFound } from "../Installation.ts"

/** `serve` and `migrate`: run the service, and update its schema. */

/** A service that is stopped by a signal has succeeded, unlike any other command. */
const stopped = Effect.sync(() => {
  process.exitCode = 0
})

export const serviceCommands: ReadonlyArray<Command> = [
  running({
    name: "serve",
    summary: "Run the service, as `npm start` does, until it is stopped.",
    example: "",
    input: Schema.Struct({}),
    run: () =>
      runService.pipe(
        // The service replaces the default logger by its own; with the command line's as well, each line would be
        // logged twice
        Effect.locally(FiberRef.currentLoggers, HashSet.make(Logger.defaultLogger)),
        Effect.onInterrupt(() => stopped)
      )
  }),
  command({
    name: "migrate",
    summary: "Bring the database's schema up to date and list the migrations that were applied.",
    example: "--json",
    input: Schema.Struct({}),
    services: databaseAsFound,
    run: () =>
      Effect.map(applyMigrations, (applied) => ({
        json: { applied },
        text:
          applied.length === 0
            ? "The schema is up to date."
            : `Applied:\n${applied.map((name) => `  ${name}`).join("\n")}`
      }))
  })
]
