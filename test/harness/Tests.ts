import * as vitest from "@effect/vitest"
import { type Duration, Effect, type Layer, type Scope, type TestServices } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { TestOptions } from "vitest"

type GeneratorTest<R, Of extends ReadonlyArray<unknown> = []> = <
  Yielded extends YieldWrap<Effect.Effect<unknown, unknown, R>>
>(
  name: string,
  body: (...of: Of) => Generator<Yielded, unknown, never>,
  timeout?: number | TestOptions
) => void

/** The same with a body that returns an effect. */
type EffectTest<R, Of extends ReadonlyArray<unknown> = []> = (
  name: string,
  body: (...of: Of) => Effect.Effect<unknown, unknown, R>,
  timeout?: number | TestOptions
) => void

type GeneratorTester<R> = GeneratorTest<R> & {
  readonly each: <T>(cases: ReadonlyArray<T>) => GeneratorTest<R, [T]> & EffectTest<R, [T]>
  readonly skipIf: (condition: unknown) => GeneratorTest<R> & EffectTest<R>
}

/** The body of a test as a generator of effects, which may use resources for as long as the test runs. */
export type Steps<R = never> = Generator<YieldWrap<Effect.Effect<unknown, unknown, R | Scope.Scope>>, void, unknown>

/** The methods of a suite that take generators. */
interface Generators<R> {
  readonly effect: GeneratorTester<R>
  readonly scoped: GeneratorTester<R | Scope.Scope>
}

interface LiveGenerators {
  readonly live: GeneratorTester<never>
  readonly scopedLive: GeneratorTester<Scope.Scope>
}

type Methods<R> = vitest.Vitest.MethodsNonLive<R, true>

type Suite<R> = Generators<R> & {
  readonly layer: <R2, E>(
    services: Layer.Layer<R2, E, R>,
    options?: { readonly timeout?: Duration.DurationInput }
  ) => (...suite: readonly [name: string, declare: Declare<R | R2>] | readonly [declare: Declare<R | R2>]) => void
} & Methods<R>

type Declare<R> = (it: Suite<R>) => void

type Run = Effect.Effect<unknown, unknown, never>
type Test = (name: string, body: () => Run, timeout?: number | TestOptions) => void
type Tester = Test & {
  readonly each: (cases: ReadonlyArray<unknown>) => Test
  readonly skipIf: (condition: unknown) => Test
}

const takingGenerators = (tester: Tester) =>
  Object.assign(generatorsOf(tester), tester, {
    each: (cases: ReadonlyArray<unknown>) => generatorsOf(tester.each(cases)),
    skipIf: (condition: unknown) => generatorsOf(tester.skipIf(condition))
  })

const generatorsOf =
  (test: Test) =>
  (
    name: string,
    body: () => Run | ReturnType<Parameters<typeof Effect.gen<YieldWrap<Run>, unknown>>[0]>,
    timeout?: number | TestOptions
  ) =>
    test(
      name,
      (...context) => {
        const made = Reflect.apply(body, undefined, context)
        return Effect.isEffect(made) ? made : Effect.gen(() => made)
      },
      timeout
    )

const withGenerators = <R, Of extends { readonly effect: unknown; readonly scoped: unknown }>(
  methods: Of,
  others: Readonly<Record<string, unknown>> = {}
) => {
  // What the tests require is checked by the types of the result
  const taking = (tester: unknown) => takingGenerators(tester as Tester)
  const own = { ...others, effect: taking(methods.effect), scoped: taking(methods.scoped) }
  return new Proxy(methods, {
    get: (target, name) => Reflect.get(Object.hasOwn(own, name) ? own : target, name)
  }) as Of & Generators<R>
}

const suiteOf = <R>(methods: Methods<R>): Suite<R> =>
  withGenerators<R, Methods<R>>(methods, { layer: layerOf(methods.layer) }) as Suite<R>

const layerOf =
  <R>(layer: Methods<R>["layer"]): Suite<R>["layer"] =>
  <R2, E>(...of: Parameters<typeof layer<R2, E>>) =>
  (...[first, second]: readonly [string, Declare<R | R2>] | readonly [Declare<R | R2>]) => {
    const suite = layer(...of)
    if (typeof first === "string") suite(first, (methods) => second?.(suiteOf(methods)))
    else suite((methods) => first(suiteOf(methods)))
  }

export { describe, expect } from "@effect/vitest"

/** `it` of `@effect/vitest`, of which `effect`, `scoped`, `live` and `scopedLive` also take generators. */
export const it = withGenerators<TestServices.TestServices, typeof vitest.it>(vitest.it, {
  live: takingGenerators(vitest.it.live as Tester),
  scopedLive: takingGenerators(vitest.it.scopedLive as Tester)
}) as Generators<TestServices.TestServices> & LiveGenerators & typeof vitest.it

/** `layer` of `@effect/vitest`, without its test clock and the like; the suite's tests may be generators. */
export const layer =
  <R, E>(services: Layer.Layer<R, E>, options: { readonly timeout?: Duration.DurationInput } = {}) =>
  (name: string, declare: Declare<R>): void =>
    vitest.layer(services, { ...options, excludeTestServices: true })(name, (methods) => declare(suiteOf(methods)))
