import { Context, type Effect, Layer, type Scope } from "effect"

/** Named, so that the declarations of classes that extend it can be written. */
export type ServiceClass<Self, Id extends string, A, L> = Context.TagClass<Self, Id, A> & { readonly layer: L }

/** A service of the type that `make` returns, with the layer that builds it. */
export const service =
  <Self>() =>
  <const Id extends string, A, E, R>(
    id: Id,
    make: Effect.Effect<A, E, R>
  ): ServiceClass<Self, Id, A, Layer.Layer<Self, E, Exclude<R, Scope.Scope>>> => {
    const tag = Context.Tag(id)<Self, A>()
    return Object.assign(tag, { layer: Layer.scoped(tag, make) })
  }

/** `service` with options. */
export const serviceWith =
  <Self>() =>
  <const Id extends string, Options, A, E, R>(
    id: Id,
    make: (options: Options) => Effect.Effect<A, E, R>
  ): ServiceClass<Self, Id, A, (options: Options) => Layer.Layer<Self, E, Exclude<R, Scope.Scope>>> => {
    const tag = Context.Tag(id)<Self, A>()
    return Object.assign(tag, { layer: (options: Options) => Layer.scoped(tag, make(options)) })
  }
