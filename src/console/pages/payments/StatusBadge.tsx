import { Badge } from "../../components/Badge.tsx"
import type { Status } from "./Statuses.ts"

export const StatusBadge = ({ status }: { readonly status: Status }) => <Badge tone={status.tone}>{status.words}</Badge>
