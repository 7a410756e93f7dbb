#!/usr/bin/env node
import { listenCommands } from "./commands/Listen.ts"
import { mcpCommands } from "./commands/Mcp.ts"
import { runMain } from "./Program.ts"

/** The command line for developers of integrations. A running service offers it as a separate archive. */

runMain({
  commands: [...listenCommands, ...mcpCommands],
  notes: "All commands need only the URL of a running service and an API key of it."
})
