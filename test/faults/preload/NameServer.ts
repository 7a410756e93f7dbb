/**
 * Loaded into a process before the service: names are asked of the server that `FAULTS_NAME_SERVER` names, in place of
 * the machine's own. Everything else about the look-up is the service's.
 */
import dns from "node:dns/promises"
import { syncBuiltinESMExports } from "node:module"

const server = process.env["FAULTS_NAME_SERVER"] ?? ""

class Resolver extends dns.Resolver {
  constructor(options?: ConstructorParameters<typeof dns.Resolver>[0]) {
    super(options)
    this.setServers([server])
  }
}

Object.defineProperty(dns, "Resolver", { value: Resolver })
syncBuiltinESMExports()
