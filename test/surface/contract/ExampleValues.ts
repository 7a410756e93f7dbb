import { createHash } from "node:crypto"
import { exampleRequestId } from "../../../src/surface/docs/OpenApiDocument.ts"
import type { Recording } from "./ExampleRecorder.ts"
import { exampleSecret } from "./ExampleRun.ts"

/**
 * The examples of a recording: what differs from run to run (ids, times, secrets) in values that don't, of the same form.
 * The same id is the same everywhere, so that the examples tell one story.
 */

const day = Date.UTC(2026, 8, 21, 14)

const minute = 60_000

/** A time of the run as one of the examples, to a quarter of an hour: a run takes seconds. A month has 30 days. */
const shifted = (time: number, runAt: number): number => {
  const offset = Math.round((time - runAt) / (15 * minute)) * 15 * minute
  const days = Math.abs(offset) / (24 * 60 * minute)
  return day + (days > 27.5 && days < 31.5 ? Math.sign(offset) * 30 * 24 * 60 * minute : offset)
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** Letters and digits that are the same in every run. */
const letters = (seed: string, length: number): string => {
  const bytes = createHash("sha512").update(seed).digest()
  return Array.from({ length }, (_, index) => alphabet.charAt((bytes[index] ?? 0) % alphabet.length)).join("")
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/
const ids = new RegExp(
  [
    uuid.source,
    "svc_evt_[0-9a-f]{64}",
    "(?<=\\b(?:acct|ba|ch|cs_test|cus|du|evt|evt_test|in|li|pi|plink|pm|po|price|prod|promo|re|si|sub|txn)_)[A-Za-z0-9]{14,}\\b"
  ].join("|"),
  "g"
)
const times = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z/g

/** Fields whose values are random, or say how long something took. */
const fixed: Readonly<Record<string, unknown>> = {
  signingSecret: `whsec_${exampleSecret}`,
  // As long as the real one, which is the base64 of the other
  standardWebhooksSecret: `whsec_${"EXAMPLE+".repeat(8)}EXA=`,
  lastFour: exampleSecret.slice(-4),
  invoice_prefix: "A1B2C3D4",
  exp_year: 2034,
  durationMs: 42
}

/** Makes values of the run into those of the examples. `runAt`: when the run was, in milliseconds. */
export const exampleValues = (runAt: number, replaced: ReadonlyMap<string, string>) => {
  const known = new Map<string, string>()
  const idOf = (id: string): string => {
    const number = known.size + 1
    const made = uuid.test(id)
      ? `0199c0de-0000-7000-8000-${String(number).padStart(12, "0")}`
      : id.startsWith("svc_evt_")
        ? `svc_evt_${createHash("sha256").update(`event ${number}`).digest("hex")}`
        : letters(`id ${number}`, id.length)
    const example = known.get(id) ?? made
    known.set(id, example)
    return example
  }
  let firstDate: number | undefined
  /** A day as one of the week of the examples: the first one that is met is the first of that week. */
  const dateOf = (date: string): string => {
    firstDate ??= Date.parse(date)
    return new Date(day + Date.parse(date) - firstDate - 6 * 24 * 60 * minute).toISOString().slice(0, 10)
  }
  const textOf = (text: string): string => {
    if (/^\d{4}-\d\d-\d\d$/.test(text)) return dateOf(text)
    let changed = text
    for (const [from, to] of replaced) changed = changed.replaceAll(from, to)
    return changed
      .replaceAll(ids, idOf)
      .replaceAll(/\breq_[0-9a-f]{32}\b/g, exampleRequestId)
      .replaceAll(times, (time) => new Date(shifted(Date.parse(time), runAt)).toISOString())
      .replaceAll(/(?<=^|id: )\d{16}$/gm, (place) => String(shifted(Number(place) / 1000, runAt) * 1000))
  }
  const of = (value: unknown): unknown => {
    if (typeof value === "string") return textOf(value)
    if (typeof value === "number") {
      const isTime = Math.abs(value * 1000 - runAt) < 400 * 24 * 60 * minute
      return isTime ? shifted(value * 1000, runAt) / 1000 : value
    }
    if (Array.isArray(value)) return value.map(of)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, name in fixed && part !== null ? fixed[name] : of(part)])
    )
  }
  return of
}

/** The files of examples by their name: those of each group of operations, and the refusals. */
export const exampleFiles = (recording: Recording, runAt: number): Readonly<Record<string, unknown>> => {
  const of = exampleValues(runAt, recording.replaced)
  const files: Record<string, Record<string, unknown>> = {}
  for (const { example, group, name } of recording.exchanges) {
    files[group] = { ...files[group], [name]: of(example) }
  }
  return { ...files, errors: of(recording.refusals) }
}
