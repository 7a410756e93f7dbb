/**
 * A `*.corpus.test.ts` tries very many made-up cases: all of them in `npm run test:full`, a fifth of them in `npm test`.
 */
const share = process.env["WHOLE_CORPUS"] === "1" ? 1 : 5

/** Whether this is `npm run test:full`, for cases that take minutes. */
export const isWhole = share === 1

/** How many of so many cases to make up. */
export const casesOf = (all: number): number => Math.ceil(all / share)

export const someOf = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => all.filter((_, index) => index % share === 0)
