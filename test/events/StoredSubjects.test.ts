import { describe, expect, it } from "@effect/vitest"
import { FastCheck, Redacted } from "effect"
import { type FilterSubjects, passes, storeSubjects, subjectsFor } from "../../src/events/Filters.ts"
import { KeyedHash } from "../../src/platform/kit/crypto/KeyedHash.ts"

const keyedHash = KeyedHash.under(Redacted.make("this installation's"))

const id = `svc_evt_${"0".repeat(64)}`
const word = FastCheck.constantFrom("a", "b", "c")
const words = (minLength: number) => FastCheck.uniqueArray(word, { minLength, maxLength: 3 })
const pairs = (minKeys: number) => FastCheck.dictionary(word, word, { minKeys, maxKeys: 3 })
const subjects = FastCheck.record({
  priceIds: FastCheck.option(words(0)),
  productIds: FastCheck.option(words(0)),
  metadata: FastCheck.option(pairs(0))
})
// An empty one is refused
const filters = FastCheck.record({ prices: words(1), products: words(1), metadata: pairs(1) }, { requiredKeys: [] })

describe("stored subjects", () => {
  it("let through exactly what the subjects themselves do", () => {
    FastCheck.assert(
      FastCheck.property(subjects, filters, (of: FilterSubjects, wanted) => {
        const read = subjectsFor(keyedHash, id, storeSubjects(keyedHash, id, of), wanted)
        expect(passes(wanted, { data: {}, subjects: read })).toBe(passes(wanted, { data: {}, subjects: of }))
      })
    )
  })

  it("hold no metadata, and the same pair differently in each event", () => {
    const of = { priceIds: null, productIds: null, metadata: { customer: "Ana Souza" } }
    const stored = storeSubjects(keyedHash, id, of)
    expect(stored).not.toMatch(/customer|Ana|Souza/)
    expect(storeSubjects(keyedHash, `svc_evt_${"1".repeat(64)}`, of)).not.toBe(stored)
  })

  it("are matched and guessed by nobody without the installation's key", () => {
    const metadata = { cpf: "111.444.777-35" }
    const of = { priceIds: null, productIds: null, metadata }
    const other = KeyedHash.under(Redacted.make("another installation's"))
    const stored = storeSubjects(keyedHash, id, of)
    expect(subjectsFor(keyedHash, id, stored, { metadata }).metadata).toEqual(metadata)
    expect(storeSubjects(other, id, of)).not.toBe(stored)
    expect(subjectsFor(other, id, stored, { metadata }).metadata).toEqual({})
  })

  it("are none if there is nothing to filter by, and of earlier versions' events", () => {
    const nothing = { priceIds: null, productIds: null, metadata: null }
    expect(storeSubjects(keyedHash, id, nothing)).toBeNull()
    expect(storeSubjects(keyedHash, id, { priceIds: [], productIds: [], metadata: {} })).toBeNull()
    expect(subjectsFor(keyedHash, id, null, { metadata: { a: "b" } })).toEqual(nothing)
  })
})
