import { randomUUID } from "node:crypto"
import type { ClaimedDelivery } from "../../../src/engine/queue/Claim.ts"
import { DeliveryId, EndpointId, OrganizationId } from "../../../src/platform/kit/Ids.ts"

export const anyDelivery = (): ClaimedDelivery => ({
  organizationId: OrganizationId.make(randomUUID()),
  environment: "sandbox",
  id: DeliveryId.make(randomUUID()),
  lease: randomUUID(),
  ctid: "(0,1)",
  attempt: 1,
  interrupted: 0,
  trigger: "automatic",
  endpointId: EndpointId.make(randomUUID()),
  eventId: `svc_evt_${"0".repeat(64)}`,
  traceparent: null,
  payload: "{}",
  secretIds: [],
  createdAt: 0,
  claimedAt: 0
})
