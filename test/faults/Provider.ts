import { Effect, Fiber } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { newEventId, notification, signature } from "../inbound/Notifications.ts"
import type { Installation, Running } from "./Installation.ts"
import type { Randomness } from "./Randomness.ts"

/** What one notification was answered, or 0 where the connection broke. */
export type Answered = number

/**
 * The provider: it notifies whichever process of the API it finds, and comes again until it is told 200. Only its waits
 * are shorter than the real one's.
 */
export type Provider = ReturnType<typeof makeProvider>

export const postOnce = (
  baseUrl: string,
  body: string,
  secret: string,
  path = "/webhooks/provider"
): Effect.Effect<Answered> =>
  Effect.promise(() =>
    fetch(`${baseUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "stripe-signature": signature(body, { secret }) },
      body,
      signal: AbortSignal.timeout(30_000)
    }).then(
      async (response) => {
        await response.arrayBuffer()
        return response.status
      },
      () => 0
    )
  )

/** What the provider has to know of a service. */
type Notified = Pick<Installation, "accountId" | "webhookSecret"> & {
  readonly processes: ReadonlyArray<Pick<Running, "role" | "baseUrl">>
}

export const makeProvider = (service: Notified, random: Randomness) => {
  const confirmed = new Set<string>()
  const answers = new Map<Answered, number>()

  const once = (body: string) =>
    Effect.suspend(() => {
      const [first, ...others] = service.processes.filter(({ role }) => role === "api")
      return first === undefined
        ? Effect.succeed(0)
        : postOnce(random.oneOf([first, ...others]).baseUrl, body, service.webhookSecret)
    }).pipe(
      Effect.tap((status) => Effect.sync(() => answers.set(status, (answers.get(status) ?? 0) + 1))),
      Effect.filterOrDie(
        (status) => status === 200 || status === 503 || status === 0,
        (status) => new Error(`A notification was answered ${status}`)
      )
    )

  const untilConfirmed = (body: string): Effect.Effect<void> =>
    Effect.flatMap(once(body), (status) =>
      status === 200 ? Effect.void : Effect.delay(untilConfirmed(body), "100 millis")
    )

  /** Notifies of one payment, until it is confirmed. Answers the provider's event id. */
  const notify = Effect.suspend(() => {
    const id = newEventId()
    const body = notification(service.accountId, { id })
    const copies = random.isTrue(0.1) ? 2 : 1
    return Effect.all(
      Array.from({ length: copies }, () => untilConfirmed(body)),
      { concurrency: copies }
    ).pipe(Effect.zipRight(Effect.sync(() => void confirmed.add(id))), Effect.as(id))
  })

  /** Notifies of so many payments a second while the effect runs, some of them in two copies at once. */
  const loading = <A, E, R>(perSecond: number, effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const underWay: Array<Fiber.RuntimeFiber<string>> = []
      const load = yield* notify.pipe(
        Effect.forkDaemon,
        Effect.tap((fiber) => Effect.sync(() => void underWay.push(fiber))),
        Effect.zipRight(Effect.sleep(1000 / perSecond)),
        Effect.forever,
        Effect.forkDaemon
      )
      const result = yield* effect.pipe(
        Effect.ensuring(Fiber.interrupt(load)),
        // What nobody confirms any more would come again for as long as the run lasts, beside the tests after this one
        Effect.onError(() => Effect.suspend(() => Fiber.interruptAll(underWay)))
      )
      yield* Fiber.joinAll(underWay)
      return result
    })

  /** Waits, under load, until so many more are confirmed. */
  const more = (count: number) =>
    Effect.suspend(() => {
      const enough = confirmed.size + count
      return Effect.orDie(eventuallyTrue(`${count} more`, () => confirmed.size >= enough, 120_000))
    })

  return { notify, loading, more, confirmed, answers }
}
