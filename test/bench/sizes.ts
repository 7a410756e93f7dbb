/**
 * How long the benches are that can be shortened. Imported before them: `all` takes two rounds of each, and a fifth of what
 * is otherwise filled or emptied, so that it ends within half an hour.
 */
if (process.argv[2] === "all") {
  process.env["BENCH_SCALE"] ??= "0.2"
  process.env["BENCH_ROUNDS"] ??= "2"
}
