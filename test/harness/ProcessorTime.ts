import { Effect } from "effect"

/** The processor time that this process takes meanwhile, in milliseconds: to be compared with that of other work. */
export const processorTime = <E, R>(work: Effect.Effect<unknown, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const before = process.cpuUsage()
    return Effect.map(work, () => {
      const { system, user } = process.cpuUsage(before)
      return (system + user) / 1000
    })
  })

/** Whether work takes less than that once in five tries: what else goes on in this process meanwhile counts too. */
export const takesLess = <E, R>(millis: number, work: Effect.Effect<unknown, E, R>): Effect.Effect<boolean, E, R> =>
  processorTime(work).pipe(
    Effect.map((took) => took < millis),
    Effect.repeat({ until: (less) => less, times: 4 })
  )
