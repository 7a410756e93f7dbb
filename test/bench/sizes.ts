/**
 * How long the benches are that can be shortened. `all` takes two rounds of each, and a fifth of what is otherwise filled
 * or emptied, so that it ends within half an hour.
 */

const isAll = process.argv[2] === "all"

/** How much is filled or emptied, as a share of what the bench by itself takes. `BENCH_SCALE=0.1` makes it a tenth. */
export const share = Number(process.env["BENCH_SCALE"] ?? (isAll ? 0.2 : 1))

/** How many rounds there are, given how many the bench by itself takes. `BENCH_ROUNDS` changes it. */
export const roundsOf = (usual: number): number => Number(process.env["BENCH_ROUNDS"] ?? (isAll ? 2 : usual))
