import { AttemptErrorCode } from "../../engine/attempts/Outcome.ts"
import { eventTypes } from "../../events/Catalog.ts"
import { exampleEvent } from "../../events/Samples.ts"
import { settingRows } from "../../platform/settings/Definitions.ts"
import { exporterRows } from "../../platform/settings/ExportSettings.ts"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import type { SettingRow } from "../../platform/settings/Setting.ts"
import { errorTable } from "./ErrorReference.ts"
import { guideFile } from "./Guides.ts"
import { withGenerated } from "./Markdown.ts"

/** The reference of attempts' error codes for integrators (contract 9.8): what each means, and what to do. */

interface Advice {
  readonly why: string
  readonly remedy: string
}

const ours = "Nothing: it is sent again."

const advice: Readonly<Record<AttemptErrorCode, Advice>> = {
  timeout: {
    why: "There was no complete answer within the attempt's timeout of 10 seconds.",
    remedy: "Store the event, answer, and do slow work afterwards."
  },
  connection_refused: { why: "Nothing listens at the endpoint's address.", remedy: "Start the receiver." },
  connection_reset: {
    why: "The connection was closed in the middle of the exchange.",
    remedy: "Check the receiver and the proxies in front of it."
  },
  dns_failure: { why: "The host's name could not be resolved.", remedy: "Check its DNS records." },
  tls_failure: {
    why: "The certificate or the handshake was not valid.",
    remedy: "Check the certificate's chain, its names and its dates."
  },
  destination_blocked: {
    why: "The host's name resolves to an address that is not public. Nothing was sent.",
    remedy: "Give it a public address, or create an endpoint with another URL."
  },
  redirect_refused: {
    why: "The answer was a redirect, which is never followed.",
    remedy: "Create an endpoint with the URL that it redirects to."
  },
  http_error: {
    why: "The answer was an HTTP status outside 2xx; `httpStatus` has it.",
    remedy: "Look it up in the receiver's log by `Service-Delivery-ID`."
  },
  response_too_large: {
    why: "The answer's headers were larger than 64 KiB.",
    remedy: "Answer with a status and as little else as possible."
  },
  network_error: {
    why: "Any other failure on the way, or an answer that is not HTTP.",
    remedy: "Check what listens at the address."
  },
  interrupted: {
    why: "A process of ours ended during the attempt; the event may have arrived. It is none of the six automatic attempts.",
    remedy: ours
  },
  endpoint_deleted: {
    why: "The endpoint was deleted while the delivery waited. Only in a delivery's `lastErrorCode`.",
    remedy: "Read the event from the delivery."
  },
  consumer_refused_signature: {
    why: "The receiver found no valid signature.",
    remedy: "Give it this endpoint's whole signing secret, and the body as it arrived. Then re-send."
  },
  consumer_refused_time: {
    why: "The receiver found the signature's time more than five minutes off.",
    remedy: "Set the receiver's clock. Then re-send."
  },
  consumer_refused_version: {
    why: "The receiver does not know the event's `version`.",
    remedy: "Update the receiver's kit. Then re-send."
  },
  consumer_refused_organization: {
    why: "The receiver expects events of another organization.",
    remedy: "Correct its `organizationId`. Then re-send."
  },
  consumer_refused_environment: {
    why: "The receiver expects events of the other environment.",
    remedy: "Correct its `livemode`: `false` for the sandbox, `true` for production. Then re-send."
  }
}

export const attemptTable = (): string =>
  [
    "| `errorCode` | Why | What to do |",
    "| --- | --- | --- |",
    ...AttemptErrorCode.literals.map((code) => `| \`${code}\` | ${advice[code].why} | ${advice[code].remedy} |`),
    ""
  ].join("\n")

/** The reference of events for integrators (contract 6): each type with an example, from the catalog. */

/** JSON on one line, with spaces for readability. */
const onOneLine = (value: unknown): string => JSON.stringify(value, undefined, 1).replaceAll(/\n */g, " ")

export const eventTable = (): string => {
  const rows = eventTypes.map(
    ({ description, type }) => `| \`${type}\` | ${description} | \`${onOneLine(exampleEvent(type).data)}\` |`
  )
  return [
    "```json",
    JSON.stringify(exampleEvent("payment.succeeded"), undefined, 2),
    "```",
    "",
    "| `type` | | `data` |",
    "| --- | --- | --- |",
    ...rows,
    ""
  ].join("\n")
}

/** The settings as a table for operators, derived from their definitions. */

const rows: ReadonlyArray<SettingRow> = [...settingRows, ...exporterRows]

export const documentedSettings: ReadonlyArray<string> = rows.map(({ name }) => name)

export const documentedInProduction = (what: "required" | "refused"): ReadonlyArray<string> =>
  rows.filter(({ production }) => production === what).map(({ name }) => name)

const lineOf = ({ about, bounds, fallback, file, name, production }: SettingRow): string => {
  const inProduction = production === undefined ? "" : `; ${production} with \`MODE=production\``
  return `| \`${name}\` | ${fallback} | ${file === undefined ? bounds : `or \`${file}\``} | ${about}${inProduction} |`
}

export const settingsTable = (): string =>
  ["| Setting | Default | Bounds | |", "| --- | --- | --- | --- |", ...rows.map(lineOf), ""].join("\n")

/** The tables in the guides that are written from the code, each between markers with its name. */
const tables: ReadonlyArray<readonly [guide: string, what: string, table: () => string]> = [
  ["events", "events", eventTable],
  ["endpoints", "error codes of attempts", attemptTable],
  ["errors", "errors", errorTable],
  ["settings", "settings", settingsTable]
]

/** Each of these guides, with a function that brings its table up to date. */
export const guideTables = tables.map(([guide, what, table]) => ({
  file: new URL(guideFile(guide), packageRoot),
  guide,
  table,
  withTable: (text: string) => withGenerated(text, what, table())
}))
