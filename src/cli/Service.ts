import { Command } from "@effect/cli"
import { Effect, FiberRef, HashSet, Layer, Logger } from "effect"
import { runService } from "../Run.ts"
import { databaseAsFound, Installation } from "./Installation.ts"
import { jsonOption, show } from "./Output.ts"
import { applyMigrations } from "./Schema.ts"
import { described, type KnownCommand } from "./Synopsis.ts"

/** `serve` and `migrate`: run the service, and update its schema. */

/** A service that is stopped by a signal has succeeded, unlike any other command. */
const stopped = Effect.sync(() => {
  process.exitCode = 0
})

/** The command that runs the service. */
export const serve: {
  readonly command: Command.Command<"serve", never, Effect.Effect.Error<typeof runService>, object>
  readonly known: KnownCommand
} = described(
  Command.make("serve", {}, () =>
    runService.pipe(
      // The service replaces the default logger by its own; beside the command line's, each line would be there twice
      Effect.locally(FiberRef.currentLoggers, HashSet.make(Logger.defaultLogger)),
      Effect.onInterrupt(() => stopped)
    )
  ),
  { command: "serve", summary: "Run the service, as `npm start` does, until it is stopped.", example: "" }
)

/** The command that brings the schema up to date. */
export const migrate = described(
  Command.make("migrate", { json: jsonOption }, ({ json }) =>
    Effect.gen(function* () {
      const applied = yield* applyMigrations
      yield* show(json, {
        json: { applied },
        text:
          applied.length === 0
            ? "The schema is up to date."
            : `Applied:\n${applied.map((name) => `  ${name}`).join("\n")}`
      })
    })
  ).pipe(Command.provide(Layer.provide(databaseAsFound, Installation.layer))),
  {
    command: "migrate",
    summary: "Bring the database's schema up to date and list the migrations that were applied.",
    example: "--json"
  }
)

/** The commands, for the help. */
export const serviceCommands: ReadonlyArray<KnownCommand> = [serve.known, migrate.known]
