import { describe, expect, it } from "@effect/vitest"
import { ApiError, refusalOf } from "../../src/console/api/ApiError.ts"
import { inWords, reasonFor } from "../../src/console/components/forms/Reasons.ts"

const refused = (message: string, ...fields: ReadonlyArray<string>) =>
  new ApiError({ message, fields, status: 422, code: "validation_failed" })

describe("a refusal of the API", () => {
  const error = refused(
    "`name` must be text of 1 to 100 characters; got 0. `discount.percent_off` is missing. `items.0.price` and `items.1.price` must be ids.",
    "name",
    "discount.percent_off",
    "items.0.price",
    "items.1.price"
  )

  it("is said at each field that it names, without the others' reasons", () => {
    expect(reasonFor(error, "name", {})).toBe("Must be text of 1 to 100 characters; got 0.")
    expect(reasonFor(error, "discount.percent_off", {})).toBe("Is missing.")
  })

  it("is said at the field that holds the one it names, in the form's words", () => {
    expect(reasonFor(error, "discount", { "discount.percent_off": "Percent off" })).toBe("Percent off is missing.")
    expect(reasonFor(error, "items", {})).toBe("items.0.price and items.1.price must be ids.")
  })

  it("is not said at other fields, even if their names begin alike", () => {
    expect(reasonFor(error, "na", {})).toBeUndefined()
    expect(reasonFor(error, "item", {})).toBeUndefined()
    expect(reasonFor(error, "", {})).toBeUndefined()
  })

  it("is said whole where no sentence is about the field", () => {
    expect(reasonFor(refused("The dates overlap.", "since"), "since", {})).toBe("The dates overlap.")
  })

  it("takes a field's name for text, never for a pattern or for markup of its own", () => {
    expect(reasonFor(refused("`a+(b` must be short.", "a+(b"), "a+(b", {})).toBe("Must be short.")
    expect(inWords("`__proto__` and `<b>` are unknown.", {})).toBe("__proto__ and <b> are unknown.")
  })
})

describe("what people read of a refusal", () => {
  it("never has a program's idempotency key in it", async () => {
    const said = [
      "The payment provider could not process the request; repeat it with the same Idempotency-Key.",
      "This Idempotency-Key was used with another operation or other parameters; send a new one.",
      "Requests with this Idempotency-Key were refused too often; send a new one."
    ]
    for (const error of said) {
      const { message } = await refusalOf(Response.json({ error, code: "provider_error" }, { status: 502 }))
      expect(message).not.toContain("Idempotency")
      expect(message).toMatch(/\.$/)
    }
    const first = await refusalOf(Response.json({ error: said.at(-3) }, { status: 502 }))
    expect(first.message).toBe("The payment provider could not process the request. Try again.")
    const running = { error: "The first request with this Idempotency-Key …", code: "idempotency_request_in_progress" }
    expect((await refusalOf(Response.json(running, { status: 409 }))).message).toContain("still being done")
  })
})
