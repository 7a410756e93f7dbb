import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files and folders that take ten seconds and more, or wait for long; the slowest first. */
const slow = [
  "test/faults/Failover.test.ts",
  "test/faults/Database.test.ts",
  "test/package/Package.test.ts",
  "test/console/Foundation.full.test.ts",
  "test/process/TwoProcesses.full.test.ts",
  "test/surface/http/Limits.full.test.ts",
  "test/surface/http/Tenancy.corpus.test.ts",
  "test/console/WholeWay.full.test.ts",
  "test/surface/http/Statistics.full.test.ts",
  "test/server/Connections.full.test.ts",
  "test/identity/Sessions.corpus.test.ts",
  "test/payments/Misbehaviour.test.ts",
  "test/payments/connecting/Authorizations.test.ts",
  "test/platform/kit/BatchInterval.test.ts",
  "test/surface/http/SlowSearches.full.test.ts",
  "test/engine/Worker.test.ts",
  "test/payments/StripeCall.test.ts",
  "test/process/",
  "test/engine/Queue",
  "test/destinations/event-streams/EventStream.test.ts",
  "test/surface/http/IdempotentRequests.test.ts",
  "test/console/",
  "test/platform/storage/EmbeddedPostgres.full.test.ts",
  "test/surface/http/",
  "test/app/cli/",
  "test/payments/"
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
