import * as vitest from "@effect/vitest"
import { type Duration, Effect, type Layer, type Scope, type TestServices } from "effect"
import type { YieldWrap } from "effect/Utils"

/** A test whose body is a generator, as `Effect.gen` takes it. */
interface GeneratorTest<R> {
  <Yielded extends YieldWrap<Effect.Effect<unknown, unknown, R>>>(
    name: string,
    body: () => Generator<Yielded, unknown, never>,
    timeout?: number
  ): void
}

/** The methods of a suite, of which `effect` and `scoped` also take generators. */
type WithGenerators<Methods, R> = Methods & {
  readonly effect: GeneratorTest<R>
  readonly scoped: GeneratorTest<R | Scope.Scope>
}

type Body = () => Effect.Effect<unknown, unknown, never> | Generator<YieldWrap<Effect.Effect<unknown>>, unknown, never>
type Tester = (name: string, body: () => Effect.Effect<unknown, unknown, never>, timeout?: number) => void

const takingGenerators = (tester: Tester) =>
  Object.assign(
    (name: string, body: Body, timeout?: number) =>
      tester(
        name,
        (...context) => {
          const made = Reflect.apply(body, undefined, context)
          return Effect.isEffect(made) ? made : Effect.gen(() => made)
        },
        timeout
      ),
    tester
  )

const withGenerators = <Methods extends { readonly effect: object; readonly scoped: object }, R>(methods: Methods) => {
  const taking: ReadonlyMap<unknown, unknown> = new Map(
    // What the methods require is checked where a test calls them
    Object.entries({ effect: methods.effect as Tester, scoped: methods.scoped as Tester }).map(([name, tester]) => [
      name,
      takingGenerators(tester)
    ])
  )
  return new Proxy(methods, {
    get: (target, name) => taking.get(name) ?? Reflect.get(target, name)
  }) as WithGenerators<Methods, R>
}

/** `it` of `@effect/vitest`, of which `effect` and `scoped` also take generators. */
export const it = withGenerators<typeof vitest.it, TestServices.TestServices>(vitest.it)

/** `layer` of `@effect/vitest`, without its test clock and the like; the suite's tests may be generators. */
export const layer =
  <R, E>(services: Layer.Layer<R, E>, options: { readonly timeout?: Duration.DurationInput } = {}) =>
  (name: string, declare: (it: WithGenerators<vitest.Vitest.MethodsNonLive<R, true>, R>) => void): void =>
    vitest.layer(services, { ...options, excludeTestServices: true })(name, (methods) =>
      declare(withGenerators<typeof methods, R>(methods))
    )
