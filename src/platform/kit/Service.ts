import { Context, type Effect, Layer, type Scope } from "effect"

/** A service whose type is that of what `make` returns, with the layer that builds it. */
export const service =
  <Self>() =>
  <const Id extends string, A, E, R>(id: Id, make: Effect.Effect<A, E, R>) =>
    class extends Context.Tag(id)<Self, A>() {
      static readonly layer: Layer.Layer<Self, E, Exclude<R, Scope.Scope>> = Layer.scoped(this, make)
    }

/** `service` with options. */
export const serviceWith =
  <Self>() =>
  <const Id extends string, Options, A, E, R>(id: Id, make: (options: Options) => Effect.Effect<A, E, R>) =>
    class extends Context.Tag(id)<Self, A>() {
      static readonly layer = (options: Options): Layer.Layer<Self, E, Exclude<R, Scope.Scope>> =>
        Layer.scoped(this, make(options))
    }
