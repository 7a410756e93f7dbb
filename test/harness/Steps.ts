import { it, type Vitest } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"

type Yielding<R> = Generator<YieldWrap<Effect.Effect<unknown, unknown, R>>, void, unknown>

/** The body of a test as a generator of effects, which may use resources for as long as the test runs. */
export type Steps<R = never> = Yielding<R | Scope.Scope>

/** A test whose body is a generator of effects: `steps(it.effect, "adds", function* () { … })`. */
export const steps = <R>(test: Vitest.Test<R>, name: string, body: () => Yielding<R>): void =>
  test(name, () => Effect.gen(body))

/** A test in real time. */
export const live = (name: string, body: () => Steps, timeout?: number): void =>
  it.scopedLive(name, () => Effect.gen(body), timeout)
