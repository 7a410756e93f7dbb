import { Context } from "effect"

/** It still answers, but reports that it is not ready. Always false if no server runs. */
export class Stopping extends Context.Reference<Stopping>()("connected-payments/kit/Stopping", {
  defaultValue: (): { begun: boolean } => ({ begun: false })
}) {}
