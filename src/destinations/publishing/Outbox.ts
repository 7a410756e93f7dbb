import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer } from "effect"
import { transaction } from "../../platform/storage/Database.ts"
import { OutboundEvents } from "./OutboundEvents.ts"
import { makeOutboxRepo, type OutboxEvent } from "./OutboxRepo.ts"

/** How many events one transaction turns into deliveries. */
const batch = 100

/** The pause after a poll that found nothing. A notification per event would serialize the team's commits. */
const pause = Duration.millis(500)

/** Turns the rows of `payments.publish` into events with deliveries; any number of processes may do so at once. */
export const outboxLayer: Layer.Layer<never, never, OutboundEvents | SqlClient.SqlClient> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const repo = yield* makeOutboxRepo
    const { announce, publish } = yield* OutboundEvents

    const refuse = ({ id, place }: OutboxEvent, reason: string, cause?: unknown) =>
      Effect.logWarning(`payments.publish: the event ${id} can't be published: ${reason}`, cause).pipe(
        Effect.zipRight(repo.refuse(place, reason)),
        Effect.as([])
      )

    /** Stores the event, or the reason for refusing it. Returns the row's key if it can be removed. */
    const publishOne = (event: OutboxEvent) =>
      publish(event).pipe(
        Effect.as([event.place]),
        Effect.catchTag("EventNotPublishable", ({ message, reason }) => refuse(event, `${reason}: ${message}`)),
        // A bug must not keep the events behind it waiting
        Effect.catchAllDefect((cause) => refuse(event, "failed: the log has the cause", cause))
      )
    const round = transaction(sql)(
      Effect.gen(function* () {
        const waiting = yield* repo.take(batch)
        const done = yield* Effect.forEach(waiting, publishOne)
        if (waiting.length > 0) yield* repo.remove(done.flat())
        return waiting.length
      })
    )
    yield* round.pipe(
      Effect.tap((found) => (found > 0 ? announce : Effect.void)),
      Effect.catchAllCause((cause) =>
        Effect.as(Effect.logWarning("Events of payments.publish wait: the next look tries again", cause), 0)
      ),
      Effect.flatMap((found) => (found < batch ? Effect.sleep(pause) : Effect.void)),
      Effect.withTracerEnabled(false),
      Effect.forever,
      Effect.forkScoped
    )
  })
)
