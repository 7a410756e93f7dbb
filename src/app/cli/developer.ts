#!/usr/bin/env node
import { listenCommands } from "./Listen.ts"
import { mcpCommands } from "./Mcp.ts"
import { runMain } from "./Program.ts"

/** The command line for developers of integrations: an archive of its own, which a running service offers. */

runMain({
  commands: [...listenCommands, ...mcpCommands],
  notes: "All commands need only the URL of a running service and an API key of it."
})
