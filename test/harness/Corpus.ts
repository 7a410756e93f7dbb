/**
 * A `*.corpus.test.ts` tries very many made-up cases: all of them in `npm run test:full`, a tenth of them in `npm test`.
 */
const share = process.env["WHOLE_CORPUS"] === "1" ? 1 : 10

/** How many of so many cases to make up; `atLeast` so many that every kind is among them. */
export const casesOf = (all: number, atLeast = 1): number => Math.max(atLeast, Math.ceil(all / share))

/** A tenth of the cases; of those that each of many gets, another tenth for each `turn`. */
export const someOf = <A>(all: ReadonlyArray<A>, turn = 0): ReadonlyArray<A> =>
  all.filter((_, index) => (index + turn) % share === 0)
