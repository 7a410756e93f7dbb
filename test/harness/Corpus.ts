/**
 * A `*.corpus.test.ts` tries very many made-up cases: all of them in `npm run test:full`, a fifth of them in `npm test`.
 */
const share = process.env["WHOLE_CORPUS"] === "1" ? 1 : 5

/** How many of so many cases to make up. */
export const casesOf = (all: number): number => Math.ceil(all / share)

/** A fifth of the cases; of those that each of many gets, another fifth for each `turn`. */
export const someOf = <A>(all: ReadonlyArray<A>, turn = 0): ReadonlyArray<A> =>
  all.filter((_, index) => (index + turn) % share === 0)
