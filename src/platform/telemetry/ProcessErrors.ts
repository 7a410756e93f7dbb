import { Cause, Effect, Runtime, type Scope } from "effect"
import { Metrics } from "./Metrics.ts"

/** Errors outside any request or fiber. Only for processes of the service itself: an embedding team handles its own. */

const endInOrder = (): void => {
  process.kill(process.pid, "SIGTERM")
}

/**
 * Until the scope closes:
 *
 * - A rejected promise that nobody awaits, such as a library's, is logged as an error and counted. By default Node
 *   would end the process, and with it all other requests and deliveries.
 * - An uncaught exception, after which anything may be half done, is logged and shuts the process down gracefully, with
 *   exit code 1. Further ones during the shutdown are logged.
 */
export const handleProcessErrors: Effect.Effect<void, never, Scope.Scope> = Effect.gen(function* () {
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  const metrics = yield* Metrics
  // Exported from the start: an alert on an increase needs a previous value
  metrics?.count("connected_payments.unhandled_rejection.count", [], 0)
  const rejected = (reason: unknown): void => {
    metrics?.count("connected_payments.unhandled_rejection.count", [])
    run(Effect.logError("A rejected promise was not handled: this is a bug. The process continues", Cause.die(reason)))
  }
  const thrown = (error: unknown): void => {
    process.exitCode = 1
    run(Effect.logError("An exception was not caught: this is a bug. The process ends", Cause.die(error)))
    endInOrder()
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("unhandledRejection", rejected).on("uncaughtException", thrown)),
    () => Effect.sync(() => process.off("unhandledRejection", rejected).off("uncaughtException", thrown))
  )
})
