import { randomUUID } from "node:crypto"
import { HttpServerResponse } from "@effect/platform"
import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, FastCheck, Fiber } from "effect"
import {
  type ApiError,
  type DocumentedErrorClass,
  documentedErrors,
  PermissionDenied,
  ProviderAccountNotConnected,
  ProviderObjectNotFound,
  ProviderPaymentRefused,
  ProviderRequestRefused,
  ProviderTimeout,
  ResourceNotFound
} from "../../../src/platform/errors/Errors.ts"
import { Idempotency, type IdempotentOperation } from "../../../src/platform/kit/Idempotency.ts"
import { inDatabase, onSharedService, TestService } from "../../harness/TestService.ts"

const newOperation = (overrides: Partial<IdempotentOperation<unknown>> = {}) =>
  Effect.map(
    TestService,
    ({ organization }): IdempotentOperation<unknown> => ({
      tenant: { organizationId: organization.id, environment: "sandbox" },
      key: randomUUID(),
      operation: "things.create",
      parameters: { name: "Coffee" },
      encode: (result) => result,
      ...overrides
    })
  )

const idempotency = Effect.map(TestService, ({ services }) => Context.get(services, Idempotency))

const wireOf = (response: HttpServerResponse.HttpServerResponse) =>
  Effect.promise(async () => {
    const web = HttpServerResponse.toWeb(response)
    return { status: web.status, text: await web.text(), replayed: web.headers.get("idempotent-replayed") }
  })

const send = <E>(operation: IdempotentOperation<unknown>, effect: Effect.Effect<unknown, E>) =>
  sendUnder(operation, () => effect)

/** The same for an effect that uses the key that it is given. */
const sendUnder = <E>(
  operation: IdempotentOperation<unknown>,
  effect: (effectKey: string) => Effect.Effect<unknown, E>
) => Effect.flatMap(idempotency, ({ run }) => Effect.flatMap(run(operation, effect), wireOf))

const counted = <A, E>(effect: Effect.Effect<A, E>) => {
  const count = { times: 0 }
  return [
    Effect.suspend(() => {
      count.times++
      return effect
    }),
    count
  ] as const
}

const rowOf = ({ key }: IdempotentOperation<unknown>) =>
  Effect.map(
    inDatabase<{ status: number | null; locked: boolean; dump: string; answer: Buffer | null }>`
      SELECT status, locked_until IS NOT NULL AS locked, to_jsonb(k)::text AS dump, answer
      FROM payments.idempotency_keys k WHERE key = ${key}`,
    ([row]) => row
  )

/** As if the process that runs the operation had died a minute ago. */
const endLease = ({ key }: IdempotentOperation<unknown>) =>
  inDatabase`
    UPDATE payments.idempotency_keys SET locked_until = now() - interval '1 second'
    WHERE key = ${key} AND locked_until IS NOT NULL`

onSharedService("an operation under an idempotency key", (it) => {
  it.effect("is refused as reused for another operation or other parameters, while running and after", function* () {
    const operation = yield* newOperation({ parameters: { a: 1, b: [1, 2], at: new Date(0) } })
    const others: ReadonlyArray<IdempotentOperation<unknown>> = [
      { ...operation, operation: "things.update" },
      ...[{ b: [2, 1] }, { a: "1" }, { b: undefined }, { c: null }, { at: new Date(1) }].map((changed) => ({
        ...operation,
        parameters: { a: 1, b: [1, 2], at: new Date(0), ...changed }
      })),
      ...[null, [], ""].map((parameters) => ({ ...operation, parameters }))
    ]
    const expectReused = Effect.forEach(others, (other) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(send(other, Effect.dieMessage("it ran")))
        expect(error._tag, JSON.stringify(other.parameters)).toBe("IdempotencyKeyReused")
      })
    )
    const gate = yield* Deferred.make<void>()
    const started = yield* Deferred.make<void>()
    const running = yield* Effect.fork(
      send(operation, Effect.zipRight(Deferred.succeed(started, undefined), Effect.as(Deferred.await(gate), {})))
    )
    yield* Deferred.await(started)
    yield* expectReused
    const { _tag } = yield* Effect.flip(send(operation, Effect.dieMessage("it ran twice")))
    expect(_tag).toBe("IdempotencyRequestInProgress")
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(running)
    yield* expectReused
  })

  it.effect("has the same parameters in whatever order their names were written", function* () {
    const service = yield* TestService
    const shuffled = FastCheck.dictionary(FastCheck.string(), FastCheck.jsonValue()).chain((parameters) =>
      FastCheck.shuffledSubarray(Object.entries(parameters), { minLength: Object.keys(parameters).length }).map(
        (entries) => [parameters, Object.fromEntries(entries)] as const
      )
    )
    yield* Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(shuffled, ([parameters, reordered]) =>
          Effect.gen(function* () {
            const operation = yield* newOperation({ parameters: { outer: parameters, list: [parameters] } })
            yield* send(operation, Effect.succeed({}))
            const again = yield* send(
              { ...operation, parameters: { list: [reordered], outer: reordered } },
              Effect.dieMessage("it ran twice")
            )
            expect(again.replayed).toBe("true")
          }).pipe(Effect.provideService(TestService, service), Effect.runPromise)
        ),
        { numRuns: 30 }
      )
    )
  })

  /** Errors that are answers of an operation that began, and those after which nobody knows whether it did. */
  const answers: ReadonlyArray<DocumentedErrorClass> = [
    ResourceNotFound,
    ProviderPaymentRefused,
    ProviderObjectNotFound
  ]
  const isOpen = ({ documentation: { code, status } }: DocumentedErrorClass) =>
    // 501 is a refusal: nothing was asked of the provider
    (status >= 500 && status !== 501) || code === "idempotency_key_reused" || code === "idempotency_request_in_progress"
  const failing = (Failure: DocumentedErrorClass): Effect.Effect<never, ApiError> => Effect.fail(new Failure())
  const corrected = { status: 200, text: '"done"', replayed: null }

  it.effect.each(documentedErrors.map((Failure) => [Failure.tag, Failure] as const))(
    "that fails with %s is repeated as that error settles it",
    function* ([, Failure]) {
      const { runInTransaction } = yield* idempotency
      const operation = yield* newOperation()
      const other = { ...operation, parameters: "corrected" }
      const [effect, count] = counted(failing(Failure))
      yield* Effect.flip(send(operation, effect))
      const kept = answers.includes(Failure)
      const again = yield* Effect.either(send(operation, effect))
      expect([again._tag, count.times]).toEqual(kept ? ["Right", 1] : ["Left", 2])
      const otherwise = yield* Effect.either(send(other, Effect.succeed("done")))
      if (kept || isOpen(Failure)) {
        expect(otherwise).toMatchObject({ _tag: "Left", left: { _tag: "IdempotencyKeyReused" } })
      } else {
        expect(otherwise).toMatchObject({ _tag: "Right", right: corrected })
      }
      // What a change in the database fails with is undone: its outcome is never open
      const change = yield* newOperation()
      yield* Effect.flip(runInTransaction(change, Effect.succeed(failing(Failure))))
      expect((yield* rowOf(change))?.status).toBe(kept ? Failure.documentation.status : undefined)
    }
  )

  it.effect("that was refused has its effects under another key from then on, and one after another", function* () {
    const operation = yield* newOperation()
    const keys: Array<string> = []
    const trying = (parameters: unknown, outcome: Effect.Effect<unknown, ApiError>) =>
      Effect.either(
        sendUnder({ ...operation, parameters }, (effectKey) => {
          keys.push(effectKey)
          return outcome
        })
      )
    yield* trying("a", Effect.fail(new ProviderRequestRefused({})))
    yield* trying("a", Effect.fail(new ProviderRequestRefused({})))
    yield* trying("b", Effect.fail(new ProviderTimeout({})))
    yield* trying("b", Effect.succeed("done"))
    expect(keys[0]).toBe(operation.key)
    expect(new Set(keys).size).toBe(3)
    expect(keys[3]).toBe(keys[2])
    expect(yield* send({ ...operation, parameters: "b" }, Effect.dieMessage("it ran twice"))).toMatchObject({
      text: '"done"'
    })
  })

  it.effect("whose outcome is open stays the same request under the same key, whatever refuses a repeat", function* () {
    const opened: ReadonlyArray<Effect.Effect<never, ApiError>> = [
      Effect.fail(new ProviderTimeout({})),
      Effect.fail(new ProviderAccountNotConnected({ settles: "open" })),
      Effect.dieMessage("a bug"),
      Effect.interrupt
    ]
    const refusals = [new ProviderRequestRefused({}), new PermissionDenied({}), new ProviderAccountNotConnected({})]
    for (const open of opened) {
      const operation = yield* newOperation()
      const keys = new Set<string>()
      const trying = (outcome: Effect.Effect<unknown, ApiError>) =>
        sendUnder(operation, (effectKey) => {
          keys.add(effectKey)
          return outcome
        })
      expect(Exit.isFailure(yield* Effect.exit(trying(open)))).toBe(true)
      for (const refusal of refusals) {
        expect(yield* Effect.flip(trying(Effect.fail(refusal)))).toBe(refusal)
        const other = yield* Effect.flip(send({ ...operation, parameters: "other" }, Effect.dieMessage("it ran")))
        expect(other._tag).toBe("IdempotencyKeyReused")
      }
      expect(yield* trying(Effect.succeed("done"))).toEqual(corrected)
      expect(keys.size).toBe(1)
    }
  })

  it.effect("is replayed to those alone who may have its answer", function* () {
    const { run } = yield* idempotency
    const operation = yield* newOperation()
    yield* send(operation, Effect.succeed({ secret: true }))
    const repeat = (mayReplay: (answer: unknown) => Effect.Effect<void, PermissionDenied>) =>
      Effect.flatMap(
        run({ ...operation, mayReplay }, () => Effect.dieMessage("it ran twice")),
        wireOf
      )
    const denied = new PermissionDenied({})
    expect(yield* Effect.flip(repeat(() => denied))).toBe(denied)
    const asked: Array<unknown> = []
    const answer = yield* repeat((given) => Effect.sync(() => void asked.push(given)))
    expect(answer).toMatchObject({ status: 200, replayed: "true" })
    expect(asked).toEqual([{ secret: true }])
  })

  it.effect("gives its key back when nobody waits for it any more", function* () {
    const operation = yield* newOperation()
    const started = yield* Deferred.make<void>()
    const running = yield* Effect.fork(
      send(operation, Effect.zipRight(Deferred.succeed(started, undefined), Effect.never))
    )
    yield* Deferred.await(started)
    yield* Fiber.interrupt(running)
    expect(yield* send(operation, Effect.succeed("done"))).toEqual(corrected)
  })

  it.effect("gives its key back when its caller leaves while it is taken", function* () {
    for (let n = 0; n < 10; n++) {
      const operation = yield* newOperation()
      const running = yield* Effect.fork(send(operation, Effect.never))
      // The statement that takes the key is on its way
      yield* Effect.promise(() => new Promise(setImmediate))
      yield* Fiber.interrupt(running)
      expect(yield* send(operation, Effect.succeed("done"))).toEqual(corrected)
    }
  })

  it.effect("is taken over, with the same parameters only, when its process has died", function* () {
    const operation = yield* newOperation()
    const gate = yield* Deferred.make<string>()
    const started = yield* Deferred.make<void>()
    const dead = yield* Effect.fork(
      send(operation, Effect.zipRight(Deferred.succeed(started, undefined), Deferred.await(gate)))
    )
    yield* Deferred.await(started)
    yield* endLease(operation)
    const other = yield* Effect.flip(send({ ...operation, parameters: "other" }, Effect.dieMessage("it ran")))
    expect(other._tag).toBe("IdempotencyKeyReused")
    expect(yield* send(operation, Effect.succeed("second"))).toMatchObject({ text: '"second"', replayed: null })
    // The first one was not dead, only slow: its answer must not replace the one that was given
    yield* Deferred.succeed(gate, "first")
    const late = yield* Effect.flip(Fiber.join(dead))
    expect(late._tag).toBe("IdempotencyRequestInProgress")
    expect(yield* send(operation, Effect.dieMessage("it ran thrice"))).toMatchObject({ text: '"second"' })
  })

  it.effect("does not answer with what was stored for another key", function* () {
    const [one, other] = [yield* newOperation(), yield* newOperation()]
    yield* send(one, Effect.succeed("one"))
    yield* send(other, Effect.succeed("other"))
    yield* inDatabase`
      UPDATE payments.idempotency_keys SET answer = (
        SELECT answer FROM payments.idempotency_keys WHERE key = ${one.key}
      ) WHERE key = ${other.key}`
    expect(Exit.isFailure(yield* Effect.exit(send(other, Effect.succeed("again"))))).toBe(true)
  })

  it.effect("is not answered where what belongs to its success fails, and may be tried again", function* () {
    const { sql } = yield* TestService
    const operation = yield* newOperation({ onSuccess: () => Effect.asVoid(sql`SELECT 1/0`) })
    const [effect, count] = counted(Effect.succeed("done"))
    expect(Exit.isFailure(yield* Effect.exit(send(operation, effect)))).toBe(true)
    expect(yield* rowOf(operation)).toMatchObject({ status: null, answer: null })
    const { onSuccess: _, ...quiet } = operation
    expect(yield* send(quiet, effect)).toMatchObject({ text: '"done"', replayed: null })
    expect(count.times).toBe(2)
  })
})

onSharedService("a change under an idempotency key", (it) => {
  /** A change that leaves a row behind, which no other test makes. */
  const insertPerson = (email: string) =>
    Effect.as(inDatabase`INSERT INTO payments.people (id, email) VALUES (${randomUUID()}, ${email})`, { email })
  const people = (email: string) => inDatabase`SELECT 1 FROM payments.people WHERE email = ${email}`

  it.effect("is there together with its answer, or not at all", function* () {
    const { runInTransaction } = yield* idempotency
    const operation = yield* newOperation()
    const email = `${randomUUID()}@example.com`
    const failing = { ...operation, onSuccess: () => Effect.asVoid(inDatabase`SELECT 1/0`) }
    expect(Exit.isFailure(yield* Effect.exit(runInTransaction(failing, Effect.succeed(insertPerson(email)))))).toBe(
      true
    )
    expect(yield* people(email)).toEqual([])
    yield* runInTransaction(operation, Effect.succeed(insertPerson(email)))
    const again = yield* Effect.flatMap(
      runInTransaction(operation, Effect.as(Effect.dieMessage("it was prepared twice"), Effect.void)),
      wireOf
    )
    expect(again).toEqual({ status: 200, text: JSON.stringify({ email }), replayed: "true" })
    expect(yield* people(email)).toHaveLength(1)
  })

  it.effect("that is refused halfway is undone, its refusal kept", function* () {
    const { runInTransaction } = yield* idempotency
    const operation = yield* newOperation()
    const email = `${randomUUID()}@example.com`
    const halfway = Effect.succeed(Effect.zipRight(insertPerson(email), new ResourceNotFound()))
    const refused = yield* Effect.flip(runInTransaction(operation, halfway))
    expect(refused._tag).toBe("ResourceNotFound")
    expect(yield* people(email)).toEqual([])
    const again = yield* Effect.flatMap(runInTransaction(operation, halfway), wireOf)
    expect(again).toMatchObject({ status: 404, replayed: "true" })
  })

  it.effect("of a slow process whose place was taken is undone", function* () {
    const { runInTransaction } = yield* idempotency
    const operation = yield* newOperation()
    const [slow, quick] = [`${randomUUID()}@example.com`, `${randomUUID()}@example.com`]
    const gate = yield* Deferred.make<void>()
    const started = yield* Deferred.make<void>()
    const running = yield* Effect.fork(
      runInTransaction(
        operation,
        Effect.zipRight(Deferred.succeed(started, undefined), Effect.as(Deferred.await(gate), insertPerson(slow)))
      )
    )
    yield* Deferred.await(started)
    yield* endLease(operation)
    yield* runInTransaction(operation, Effect.succeed(insertPerson(quick)))
    yield* Deferred.succeed(gate, undefined)
    expect((yield* Effect.flip(Fiber.join(running)))._tag).toBe("IdempotencyRequestInProgress")
    expect(yield* people(slow)).toEqual([])
    expect(yield* people(quick)).toHaveLength(1)
  })
})
