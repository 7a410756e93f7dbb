import { Badge } from "../../components/Badge.tsx"
import { type Delivery, waitsToRetry } from "./timeline.ts"

const words = {
  delivered: { tone: "ok", word: "Delivered" },
  failed: { tone: "problem", word: "Failed" },
  queued: { tone: "info", word: "Queued" },
  again: { tone: "warning", word: "Waiting to retry" }
} as const

export const DeliveryState = ({ delivery }: { readonly delivery: Delivery }) => {
  const { tone, word } = words[waitsToRetry(delivery) ? "again" : delivery.state]
  return <Badge tone={tone}>{word}</Badge>
}
