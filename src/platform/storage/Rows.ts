import { Effect, Option } from "effect"

/** The first row that a statement answers. */
export const firstRow = <A, E, R>(rows: Effect.Effect<ReadonlyArray<A>, E, R>): Effect.Effect<Option.Option<A>, E, R> =>
  Effect.map(rows, ([row]) => Option.fromNullable(row))

/** Whether a statement answers any row. */
export const anyRow = <E, R>(rows: Effect.Effect<ReadonlyArray<unknown>, E, R>): Effect.Effect<boolean, E, R> =>
  Effect.map(rows, ({ length }) => length > 0)

/** The row of a statement that always answers one. */
export const oneRow = <A, E, R>(rows: Effect.Effect<ReadonlyArray<A>, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(rows, ([row]) =>
    row === undefined ? Effect.dieMessage("A statement that answers a row answered none") : Effect.succeed(row)
  )
