import { describe, expect, it } from "@effect/vitest"
import { Reader } from "../../src/console/components/Reader.ts"
import {
  type CheckoutPage,
  draftOfPage,
  emptyCheckoutPage,
  newPage,
  pageChanges
} from "../../src/console/pages/catalog/CheckoutPageDraft.ts"
import { emptyItem, type ItemDraft, itemsIn } from "../../src/console/pages/catalog/ItemDraft.ts"
import { emptyPrice, type PriceDraft, readPrice } from "../../src/console/pages/catalog/PriceDraft.ts"
import { draftOf, emptyProduct, newProduct, productChanges } from "../../src/console/pages/catalog/ProductDraft.ts"
import { emptyPromotion, type PromotionDraft, readPromotion } from "../../src/console/pages/catalog/PromotionDraft.ts"
import { emptyQuestion, keyOf, type QuestionDraft, questionsIn } from "../../src/console/pages/catalog/QuestionDraft.ts"

const price = (fields: Partial<PriceDraft>) => readPrice({ ...emptyPrice("brl"), ...fields })

describe("a price that is written in a form", () => {
  it("is a fixed amount, once", () => {
    expect(price({ amount: 1500 })).toEqual({ kind: "ready", value: { currency: "brl", unit_amount: 1500 } })
  })

  it("recurs, after a trial if it has one", () => {
    const recurring = { amount: 1500, isRecurring: true, intervalCount: "3" }
    expect(price(recurring)).toEqual({
      kind: "ready",
      value: { currency: "brl", unit_amount: 1500, recurring: { interval: "month", interval_count: 3 } }
    })
    expect(price({ ...recurring, trialDays: "14" })).toMatchObject({ value: { recurring: { trial_period_days: 14 } } })
  })

  it("has tiers, the last without an end", () => {
    const tiers = [
      { key: 0, upTo: "10", unitAmount: 500, flatAmount: undefined },
      { key: 1, upTo: "7", unitAmount: undefined, flatAmount: 100 }
    ]
    expect(price({ scheme: "tiers", tiers })).toEqual({
      kind: "ready",
      value: {
        currency: "brl",
        tiers_mode: "graduated",
        tiers: [
          { up_to: 10, unit_amount: 500 },
          { up_to: "inf", flat_amount: 100 }
        ]
      }
    })
  })

  it("has only those bounds of the payer's amount that were written, and never recurs with them", () => {
    expect(price({ scheme: "chosen", minimum: 500, isRecurring: true })).toEqual({
      kind: "ready",
      value: { currency: "brl", custom_unit_amount: { minimum: 500 } }
    })
  })

  it("takes its key from another only if it has one", () => {
    expect(price({ amount: 1, lookupKey: " basic ", transfersKey: true })).toMatchObject({
      value: { lookup_key: "basic", transfer_lookup_key: true }
    })
    expect(price({ amount: 1, transfersKey: true })).toEqual({
      kind: "ready",
      value: { currency: "brl", unit_amount: 1 }
    })
  })

  it("is not sent with what can't be read, by the name of the field", () => {
    expect(price({})).toMatchObject({ problems: { unit_amount: expect.any(String) } })
    expect(price({ amount: Number.NaN })).toMatchObject({ problems: { unit_amount: expect.any(String) } })
    expect(price({ scheme: "chosen", maximum: Number.NaN })).toMatchObject({
      problems: { "custom_unit_amount.maximum": expect.any(String) }
    })
    expect(price({ scheme: "package", amount: 1, packageSize: "a dozen" })).toMatchObject({
      problems: { "transform_quantity.divide_by": expect.any(String) }
    })
    expect(price({ scheme: "tiers" })).toMatchObject({
      problems: { "tiers.0.unit_amount": expect.any(String), "tiers.1.unit_amount": expect.any(String) }
    })
    expect(price({ amount: 1, isRecurring: true, trialDays: "soon" })).toMatchObject({
      problems: { "recurring.trial_period_days": expect.any(String) }
    })
    // Nothing of a part that is not shown
    expect(price({ amount: 1, trialDays: "soon" }).kind).toBe("ready")
  })
})

describe("a product that is written in a form", () => {
  const product = {
    id: "prod_1",
    name: "Beans",
    description: "Roasted",
    images: ["https://a.example/1.png"],
    url: null
  }

  it("has only what was filled in", () => {
    expect(newProduct({ ...emptyProduct, name: " Beans " })).toEqual({ name: "Beans" })
  })

  it("sends only what was changed, and removes what was emptied", () => {
    const before = draftOf(product)
    expect(productChanges(product, before)).toEqual({})
    expect(productChanges(product, { ...before, name: "Beans, 1 kg", description: "" })).toEqual({
      name: "Beans, 1 kg",
      description: ""
    })
    expect(productChanges(product, { ...before, images: [] })).toEqual({ images: [] })
  })
})

describe("a promotion code that is written in a form", () => {
  const code = (fields: Partial<PromotionDraft>) =>
    readPromotion({ ...emptyPromotion("brl"), code: "SUMMER25", ...fields })

  it("takes off a percentage or an amount", () => {
    expect(code({ percent: "12,5" })).toEqual({
      kind: "ready",
      value: { code: "SUMMER25", discount: { percent_off: 12.5 }, duration: "once" }
    })
    expect(code({ kind: "amount", amount: 1000 })).toMatchObject({
      value: { discount: { amount_off: 1000, currency: "brl" } }
    })
  })

  it("has months only if it repeats", () => {
    expect(code({ percent: "5", duration: "repeating" })).toMatchObject({ value: { duration_in_months: 3 } })
    expect(code({ percent: "5", duration: "forever" })).not.toHaveProperty("value.duration_in_months")
  })

  it("expires at a moment of the reader's zone", () => {
    expect(code({ percent: "5", expires: "2030-01-02T03:04" })).toMatchObject({
      value: { expires_at: new Date(2030, 0, 2, 3, 4).getTime() / 1000 }
    })
  })

  it("is not sent with what can't be read", () => {
    expect(code({})).toMatchObject({ problems: { "discount.percent_off": expect.any(String) } })
    expect(code({ kind: "amount", amount: Number.NaN })).toMatchObject({
      problems: { "discount.amount_off": expect.any(String) }
    })
    expect(code({ percent: "5", limit: "many" })).toMatchObject({ problems: { max_redemptions: expect.any(String) } })
    expect(code({ percent: "5", duration: "repeating", months: "" })).toMatchObject({
      problems: { duration_in_months: expect.any(String) }
    })
  })
})

describe("what a link sells", () => {
  const readItems = (items: ReadonlyArray<ItemDraft>) => {
    const reader = new Reader()
    return reader.done(itemsIn(reader, items, { prefix: "line_items", adjustable: "adjustable_quantity" }))
  }

  it("is prices with quantities, within bounds if the payer chooses", () => {
    const items = [
      { ...emptyItem(0), price: "price_1" },
      { ...emptyItem(1), price: "price_2", isAdjustable: true }
    ]
    expect(readItems(items)).toEqual({
      kind: "ready",
      value: [
        { price: "price_1", quantity: 1, bounds: undefined },
        { price: "price_2", quantity: 1, bounds: { minimum: 1, maximum: 10 } }
      ]
    })
  })

  it("is not sent without a price, or with what is no number", () => {
    expect(readItems([{ ...emptyItem(0), quantity: "x", isAdjustable: true, maximum: "" }])).toEqual({
      kind: "problems",
      problems: {
        "line_items.0.price": expect.any(String),
        "line_items.0.quantity": expect.any(String),
        "line_items.0.adjustable_quantity.maximum": expect.any(String)
      }
    })
  })
})

describe("questions to payers", () => {
  const readQuestions = (questions: ReadonlyArray<QuestionDraft>) => {
    const reader = new Reader()
    return reader.done(questionsIn(reader, questions))
  }

  it("have a key of letters and digits, from the label if none is given", () => {
    expect(keyOf("Grão ou moído?")).toBe("graooumoido")
    expect(readQuestions([{ ...emptyQuestion(0), label: "Grind" }])).toEqual({
      kind: "ready",
      value: [{ key: "grind", label: "Grind", type: "text" }]
    })
  })

  it("offer each line of a list under a value of its own", () => {
    const asked = readQuestions([
      { ...emptyQuestion(0), label: "Grind", type: "dropdown", options: "Fine\n\nfine!\n★" }
    ])
    expect(asked).toMatchObject({
      value: [
        {
          options: [
            { label: "Fine", value: "fine" },
            { label: "fine!", value: "fine2" },
            { label: "★", value: "3" }
          ]
        }
      ]
    })
  })

  it("are not sent without words, a key, or something to choose", () => {
    expect(
      readQuestions([
        emptyQuestion(0),
        { ...emptyQuestion(1), label: "★" },
        { ...emptyQuestion(2), label: "Grind", type: "dropdown" }
      ])
    ).toMatchObject({
      problems: {
        "collect.customFields.0.label": expect.any(String),
        "collect.customFields.1.key": expect.any(String),
        "collect.customFields.2.options": expect.any(String)
      }
    })
  })
})

describe("a checkout page that is written in a form", () => {
  const page: CheckoutPage = {
    id: "01a1fcfb-855f-758a-8a83-c113f9e1051b",
    url: "https://payments.example/pay/abc",
    slug: "abc",
    environment: "sandbox",
    active: true,
    title: "Coffee",
    text: "Fresh",
    imageUrl: "https://payments.example/product-images/a.png",
    imageAlt: "A cup",
    items: [
      {
        price: "price_1",
        quantity: 2,
        adjustableQuantity: { minimum: 1, maximum: 5 },
        product: "prod_1",
        name: "Beans",
        currency: "brl",
        unitAmount: 1500,
        recurring: null
      }
    ],
    collect: {
      billingAddress: true,
      phoneNumber: false,
      customFields: [
        {
          key: "grind",
          label: "Grind",
          type: "dropdown",
          options: [
            { label: "Fine", value: "g1" },
            { label: "Coarse", value: "g2" }
          ]
        }
      ]
    },
    allowPromotionCodes: false,
    successText: "Thank you",
    sales: 3,
    createdAt: "2026-11-23T05:00:00.000Z",
    updatedAt: "2026-11-23T05:00:00.000Z"
  }
  const before = draftOfPage(page)

  it("has only what was filled in, with a title and items", () => {
    const items = [{ ...emptyItem(0), price: "price_1" }]
    expect(newPage({ ...emptyCheckoutPage, title: " Coffee ", items })).toEqual({
      kind: "ready",
      value: {
        title: "Coffee",
        items: [{ price: "price_1", quantity: 1 }],
        collect: { billingAddress: false, phoneNumber: false, customFields: [] },
        allowPromotionCodes: false
      }
    })
    expect(newPage(emptyCheckoutPage)).toMatchObject({ problems: { "items.0.price": expect.any(String) } })
  })

  it("sends only what was changed, and removes what was emptied", () => {
    expect(pageChanges(page, before)).toEqual({ kind: "ready", value: {} })
    expect(pageChanges(page, { ...before, title: "Tea", text: " ", images: [], thanks: "" })).toEqual({
      kind: "ready",
      value: { title: "Tea", text: "", imageUrl: "", imageAlt: "", successText: "" }
    })
    expect(pageChanges(page, { ...before, items: before.items.map((item) => ({ ...item, maximum: "9" })) })).toEqual({
      kind: "ready",
      value: { items: [{ price: "price_1", quantity: 2, adjustableQuantity: { minimum: 1, maximum: 9 } }] }
    })
    expect(pageChanges(page, { ...before, items: [emptyItem(0)] })).toMatchObject({ kind: "problems" })
  })

  it("keeps the values of answers whose words stay, and gives none of them to another answer", () => {
    const questions = before.questions.map((question) => ({ ...question, options: "g1\nCoarse\nWhole" }))
    expect(pageChanges(page, { ...before, questions })).toMatchObject({
      value: {
        collect: {
          customFields: [
            {
              options: [
                { label: "g1", value: "g1" },
                { label: "Coarse", value: "g2" },
                { label: "Whole", value: "whole" }
              ]
            }
          ]
        }
      }
    })
    const taken = before.questions.map((question) => ({ ...question, options: "Fine\ng1" }))
    expect(pageChanges(page, { ...before, questions: taken })).toMatchObject({
      value: {
        collect: {
          customFields: [
            {
              options: [
                { label: "Fine", value: "g1" },
                { label: "g1", value: "g12" }
              ]
            }
          ]
        }
      }
    })
  })
})
