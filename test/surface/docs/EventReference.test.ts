import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { AttemptErrorCode } from "../../../src/engine/attempts/Outcome.ts"
import { EventType, eventData } from "../../../src/events/Catalog.ts"
import { Envelope } from "../../../src/events/Envelope.ts"
import { exampleEvent } from "../../../src/events/Samples.ts"
import { attemptTable, eventTable } from "../../../src/surface/docs/GuideTables.ts"

describe("the reference of events", () => {
  it("has each of the 19 types once, with data that the catalog describes, field by field", () => {
    const rows = [...eventTable().matchAll(/^\| `([a-z_.]+)` \| [^|]+ \| `(\{[^`|]+\})` \|$/gm)]
    expect(rows.map(([, type]) => type)).toEqual([...EventType.literals])
    expect(rows).toHaveLength(19)
    for (const [, type, data = ""] of rows) {
      const { fields } = eventData[Schema.decodeUnknownSync(EventType)(type)]
      expect(Object.keys(JSON.parse(data)), type).toEqual(Object.keys(fields))
    }
  })

  it("shows events that the service could send, and no synthetic ones", () => {
    for (const type of EventType.literals) {
      const event = Schema.decodeUnknownSync(Envelope, { onExcessProperty: "error" })(exampleEvent(type))
      expect([event.type, event.livemode, event.test]).toEqual([type, false, undefined])
    }
    const [, shown = ""] = /```json\n([\s\S]*?)```/.exec(eventTable()) ?? []
    expect(JSON.parse(shown)).toEqual(exampleEvent("payment.succeeded"))
  })
})

describe("the table of attempts' error codes", () => {
  it("has each code once", () => {
    const rows = [...attemptTable().matchAll(/^\| `([a-z_]+)` \| [^|]+ \| [^|]+ \|$/gm)]
    expect(rows.map(([, code]) => code)).toEqual([...AttemptErrorCode.literals])
  })
})
