import type { Effect } from "effect"
import { accountCommands } from "./commands/Accounts.ts"
import { emulatorCommands } from "./commands/Emulator.ts"
import { imageCommands } from "./commands/Images.ts"
import { keyCommands } from "./commands/Keys.ts"
import { listenCommands } from "./commands/Listen.ts"
import { mcpCommands } from "./commands/Mcp.ts"
import { memberCommands } from "./commands/Members.ts"
import { organizationCommands } from "./commands/Organizations.ts"
import { receiptCommands } from "./commands/Receipts.ts"
import { serviceCommands } from "./commands/Service.ts"
import type { Program } from "./Help.ts"
import { run } from "./Program.ts"

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
