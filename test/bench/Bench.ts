import { Console, Effect, type Scope } from "effect"

export interface Figure {
  readonly bench: string
  /** What was measured, e.g. a server or a size. */
  readonly case: string
  readonly metric: string
  readonly value: number
  readonly unit: string
}

/** A benchmark: `npm run bench -- <name>`. */
export interface Bench {
  readonly name: string
  /** What it measures, for the list of benchmarks. */
  readonly about: string
  /** Says what it is doing on standard error. Most take a few minutes, `growth`, `neighbour` and `soak` up to a quarter of an hour. */
  readonly run: Effect.Effect<ReadonlyArray<Figure>, unknown, Scope.Scope>
}

export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN

export const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)] ?? Number.NaN

export const inRounds = <Round, E, R>(rounds: number, round: (number: number) => Effect.Effect<Round, E, R>) =>
  Effect.forEach(
    Array.from({ length: rounds }, (_, index) => index + 1),
    (number) => Effect.zipRight(Console.error(`Round ${number} of ${rounds}`), round(number))
  )

/** Makes a bench's figures of its rounds: each is the median of what a round says. */
export const figuresOf =
  <Round>(bench: string, rounds: ReadonlyArray<Round>) =>
  (name: string, metric: string, unit: string, of: (round: Round) => number): Figure => ({
    bench,
    case: name,
    metric,
    value: median(rounds.map(of)),
    unit
  })

/** A column of a bench's table; `of` is given the case's own measurement, and those of all cases of its round. */
export type Metric<One> = readonly [metric: string, unit: string, of: (one: One, round: ReadonlyArray<One>) => number]

/** The figures of cases, each measured once in each round, in their order; the medians of the rounds. */
export const figuresOfCases = <One>(
  bench: string,
  cases: ReadonlyArray<string>,
  rounds: ReadonlyArray<ReadonlyArray<One>>,
  metrics: ReadonlyArray<Metric<One>>
): ReadonlyArray<Figure> =>
  cases.flatMap((name, index) =>
    metrics.map(([metric, unit, of]) =>
      figuresOf(
        bench,
        rounds.flatMap((round) => (round[index] === undefined ? [] : of(round[index], round)))
      )(name, metric, unit, (value) => value)
    )
  )

/** The column of how a case compares with the first one: each round's ratio by itself, since rounds differ more than cases. */
export const ratioToFirst = <One>(metric: string, of: (one: One) => number): Metric<One> => [
  metric,
  "",
  (one, [first]) => (first === undefined ? Number.NaN : of(one) / of(first))
]

const rounded = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 10 ? 1 : 3)

export const table = (figures: ReadonlyArray<Figure>): string => {
  const metrics = [...new Set(figures.map(({ metric, unit }) => `${metric} (${unit})`))]
  const rows = [
    ["case", ...metrics],
    ...[...new Set(figures.map((figure) => figure.case))].map((name) => [
      name,
      ...metrics.map((metric) => {
        const figure = figures.find((one) => one.case === name && `${one.metric} (${one.unit})` === metric)
        return figure === undefined ? "" : rounded(figure.value)
      })
    ])
  ]
  return aligned(rows, 1)
}

export const rowsOf = (figures: ReadonlyArray<Figure>): string =>
  aligned(
    [
      ["bench", "case", "metric", "value", "unit"],
      ...figures.map(({ bench, case: name, metric, unit, value }) => [bench, name, metric, rounded(value), unit])
    ],
    3
  )

/** Rows of cells as text; the first columns are aligned to the left, the others to the right. */
const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>, leftColumns: number): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column < leftColumns ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
        )
        .join("  ")
    )
    .join("\n")
}
