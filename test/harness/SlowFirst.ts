import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files and folders that start processes or wait, the slowest first. */
const slow = [
  "test/process/Shutdown.test.ts",
  "test/process/Start.test.ts",
  "test/process/Crash.test.ts",
  "test/deliveries/WorkerPool.test.ts",
  "test/storage/EmbeddedPostgres.test.ts",
  "test/http/Tenancy.test.ts",
  "test/webhooks/Languages.test.ts",
  "test/http/Limits.test.ts",
  "test/http/Connections.test.ts",
  "test/http/Tracing.test.ts",
  "test/http/Statistics.test.ts",
  "test/contract/Linters.test.ts",
  "test/contract/Examples.test.ts",
  "test/contract/GeneratedClients.test.ts",
  "test/storage/Failover.test.ts",
  "test/deliveries/SlowEndpoints.test.ts",
  "test/provider/Misbehaviour.test.ts",
  "test/conformance/Events.test.ts",
  "test/process/",
  "test/deliveries/Queue",
  "test/console/Foundation.test.ts",
  "test/console/",
  "test/http/Browser.test.ts",
  "test/provider/StripeCall.test.ts",
  "test/http/IdempotentRequests.test.ts",
  "test/deliveries/Worker.test.ts",
  "test/inbound/InboundProperties.test.ts",
  "test/identity/Sessions.test.ts",
  "test/docs/GuidePages.test.ts",
  "test/http/BadInput.test.ts",
  "test/http/HostileBodies.test.ts",
  "test/storage/",
  "test/cli/",
  "test/deliveries/StateMachine.test.ts",
  "test/http/Outage.test.ts",
  "test/docs/",
  "test/mcp/"
]

const rank = ({ moduleId }: TestSpecification): number => {
  const at = slow.findIndex((path) => moduleId.includes(`/${path}`))
  return at === -1 ? slow.length : at
}

/**
 * Slow files come first, whether or not an earlier run's times are known: no worker is left with a long
 * one at the end.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
