import config from "./vitest.config.ts"

/**
 * What is slow and seldom fails alone: pages in browsers, processes, large corpora, generated clients. `npm test` has at
 * least one case of each kind.
 */
export default { test: { ...config.test, include: ["test/**/*.full.test.ts"], exclude: [] } }
