import { Badge } from "../../components/Badge.tsx"
import { type Delivery, waitsToRetry } from "./timeline.ts"

const badges = {
  delivered: <Badge tone="ok">Delivered</Badge>,
  failed: <Badge tone="problem">Failed</Badge>,
  queued: <Badge tone="info">Queued</Badge>,
  again: <Badge tone="warning">Waiting to retry</Badge>
}

export const DeliveryState = ({ delivery }: { readonly delivery: Delivery }) =>
  badges[waitsToRetry(delivery) ? "again" : delivery.state]
