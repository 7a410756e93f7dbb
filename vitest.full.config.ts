import config from "./vitest.config.ts"

/**
 * What is slow and seldom fails alone: pages in browsers, processes, clients, whole corpora. `npm test` has at least one
 * case of each kind.
 */
export default {
  test: {
    ...config.test,
    include: ["test/**/*.{full,corpus}.test.ts"],
    exclude: [],
    // See test/harness/Corpus.ts
    env: { WHOLE_CORPUS: "1" }
  }
}
