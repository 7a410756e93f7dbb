import { Context } from "effect"

/** Whether the server has begun to stop: it answers what comes, and asks not to be sent more. Never, where none serves. */
export class Stopping extends Context.Reference<Stopping>()("connected-payments/http/Stopping", {
  defaultValue: (): { begun: boolean } => ({ begun: false })
}) {}
