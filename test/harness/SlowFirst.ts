import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files and folders that take ten seconds and more, or wait for long; the slowest first. */
const slow = [
  "test/console/Foundation.full.test.ts",
  "test/process/TwoProcesses.full.test.ts",
  "test/http/Limits.full.test.ts",
  "test/http/Tenancy.test.ts",
  "test/console/WholeWay.test.ts",
  "test/http/Statistics.test.ts",
  "test/http/Connections.test.ts",
  "test/identity/Sessions.test.ts",
  "test/provider/Misbehaviour.test.ts",
  "test/provider/connecting/Authorizations.test.ts",
  "test/kit/BatchInterval.test.ts",
  "test/http/SlowSearches.test.ts",
  "test/deliveries/Worker.test.ts",
  "test/provider/StripeCall.test.ts",
  "test/process/",
  "test/deliveries/Queue",
  "test/deliveries/stream/EventStream.test.ts",
  "test/http/IdempotentRequests.test.ts",
  "test/console/",
  "test/storage/EmbeddedPostgres.full.test.ts",
  "test/http/",
  "test/cli/",
  "test/provider/"
]

const rank = ({ moduleId }: TestSpecification): number => {
  const at = slow.findIndex((path) => moduleId.includes(`/${path}`))
  return at === -1 ? slow.length : at
}

/** Slow files come first, even if no earlier run's times are known: no worker is left with a long one at the end. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
