import type { Effect } from "effect"
import { accountCommands } from "./Accounts.ts"
import { emulatorCommands } from "./Emulator.ts"
import type { Program } from "./Help.ts"
import { imageCommands } from "./Images.ts"
import { keyCommands } from "./Keys.ts"
import { listenCommands } from "./Listen.ts"
import { mcpCommands } from "./Mcp.ts"
import { memberCommands } from "./Members.ts"
import { organizationCommands } from "./Organizations.ts"
import { run } from "./Program.ts"
import { receiptCommands } from "./Receipts.ts"
import { serviceCommands } from "./Service.ts"

export const cli: Program = {
  commands: [
    ...serviceCommands,
    ...organizationCommands,
    ...memberCommands,
    ...keyCommands,
    ...accountCommands,
    ...imageCommands,
    ...receiptCommands,
    ...emulatorCommands,
    ...mcpCommands,
    ...listenCommands
  ],
  notes:
    "Commands work on the service's own settings: DATABASE_URL and the others. Without DATABASE_URL they use the service that runs on DATA_DIR, or start its embedded database for the duration of the command. `listen`, `trigger` and `mcp` need only the URL of a running service and an API key."
}

export const runCli = (args: ReadonlyArray<string>): Effect.Effect<number> => run(cli, args)
