#!/usr/bin/env node
import { cli } from "./Cli.ts"
import { runMain } from "./Program.ts"

runMain(cli)
