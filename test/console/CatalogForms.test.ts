import { describe, expect, it } from "@effect/vitest"
import { Reader, type Written } from "../../src/console/components/forms/Reader.ts"
import {
  type CheckoutPage,
  type CheckoutPageDraft,
  draftOfPage,
  emptyCheckoutPage,
  newPage,
  pageChanges
} from "../../src/console/pages/catalog/payment-links/CheckoutPageDraft.ts"
import { emptyItem, type ItemDraft, itemsIn } from "../../src/console/pages/catalog/payment-links/ItemDraft.ts"
import {
  emptyQuestion,
  keyOf,
  type QuestionDraft,
  questionsIn
} from "../../src/console/pages/catalog/payment-links/QuestionDraft.ts"
import { emptyPrice, type PriceDraft, readPrice } from "../../src/console/pages/catalog/prices/PriceDraft.ts"
import {
  draftOf,
  emptyProduct,
  newProduct,
  productChanges
} from "../../src/console/pages/catalog/products/ProductDraft.ts"
import {
  emptyPromotion,
  type PromotionDraft,
  readPromotion
} from "../../src/console/pages/catalog/promotion-codes/PromotionDraft.ts"

/** What a form sends, or the names of the fields that keep it from being sent. */
const outcome = (written: Written<unknown>) =>
  written.kind === "ready" ? written.value : Object.keys(written.problems).toSorted()

const price = (fields: Partial<PriceDraft>) => outcome(readPrice({ ...emptyPrice("brl"), ...fields }))

describe("a price that is written in a form", () => {
  it("is a fixed amount, once", () => {
    expect(price({ amount: 1500 })).toEqual({ currency: "brl", unit_amount: 1500 })
  })

  it("recurs, after a trial if it has one", () => {
    const recurring = { amount: 1500, isRecurring: true, intervalCount: "3" }
    expect(price(recurring)).toEqual({
      currency: "brl",
      unit_amount: 1500,
      recurring: { interval: "month", interval_count: 3 }
    })
    expect(price({ ...recurring, trialDays: "14" })).toMatchObject({ recurring: { trial_period_days: 14 } })
  })

  it("has tiers, the last without an end", () => {
    const tiers = [
      { key: 0, upTo: "10", unitAmount: 500, flatAmount: undefined },
      { key: 1, upTo: "7", unitAmount: undefined, flatAmount: 100 }
    ]
    expect(price({ scheme: "tiers", tiers })).toEqual({
      currency: "brl",
      tiers_mode: "graduated",
      tiers: [
        { up_to: 10, unit_amount: 500 },
        { up_to: "inf", flat_amount: 100 }
      ]
    })
  })

  it("has only those bounds of the payer's amount that were written, and never recurs with them", () => {
    expect(price({ scheme: "chosen", minimum: 500, isRecurring: true })).toEqual({
      currency: "brl",
      custom_unit_amount: { minimum: 500 }
    })
  })

  it("takes its key from another only if it has one", () => {
    expect(price({ amount: 1, lookupKey: " basic ", transfersKey: true })).toMatchObject({
      lookup_key: "basic",
      transfer_lookup_key: true
    })
    expect(price({ amount: 1, transfersKey: true })).toEqual({ currency: "brl", unit_amount: 1 })
  })

  it("is not sent with what can't be read, by the name of the field", () => {
    expect(price({})).toEqual(["unit_amount"])
    expect(price({ amount: Number.NaN })).toEqual(["unit_amount"])
    expect(price({ scheme: "chosen", maximum: Number.NaN })).toEqual(["custom_unit_amount.maximum"])
    expect(price({ scheme: "package", amount: 1, packageSize: "a dozen" })).toEqual(["transform_quantity.divide_by"])
    expect(price({ scheme: "tiers" })).toEqual(["tiers.0.unit_amount", "tiers.1.unit_amount"])
    expect(price({ amount: 1, isRecurring: true, trialDays: "soon" })).toEqual(["recurring.trial_period_days"])
    // Nothing of a part that is not shown
    expect(price({ amount: 1, trialDays: "soon" })).toEqual({ currency: "brl", unit_amount: 1 })
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
    outcome(readPromotion({ ...emptyPromotion("brl"), code: "SUMMER25", ...fields }))

  it("takes off a percentage or an amount", () => {
    expect(code({ percent: "12,5" })).toEqual({ code: "SUMMER25", discount: { percent_off: 12.5 }, duration: "once" })
    expect(code({ kind: "amount", amount: 1000 })).toMatchObject({ discount: { amount_off: 1000, currency: "brl" } })
  })

  it("has months only if it repeats", () => {
    expect(code({ percent: "5", duration: "repeating" })).toMatchObject({ duration_in_months: 3 })
    expect(code({ percent: "5", duration: "forever" })).not.toHaveProperty("duration_in_months")
  })

  it("expires at a moment of the reader's zone", () => {
    expect(code({ percent: "5", expires: "2030-01-02T03:04" })).toMatchObject({
      expires_at: new Date(2030, 0, 2, 3, 4).getTime() / 1000
    })
  })

  it("is not sent with what can't be read", () => {
    expect(code({})).toEqual(["discount.percent_off"])
    expect(code({ kind: "amount", amount: Number.NaN })).toEqual(["discount.amount_off"])
    expect(code({ percent: "5", limit: "many" })).toEqual(["max_redemptions"])
    expect(code({ percent: "5", duration: "repeating", months: "" })).toEqual(["duration_in_months"])
  })
})

describe("what a link sells", () => {
  const readItems = (items: ReadonlyArray<ItemDraft>) => {
    const reader = new Reader()
    return outcome(reader.done(itemsIn(reader, items, { prefix: "line_items", adjustable: "adjustable_quantity" })))
  }

  it("is prices with quantities, within bounds if the payer chooses", () => {
    const items = [
      { ...emptyItem(0), price: "price_1" },
      { ...emptyItem(1), price: "price_2", isAdjustable: true }
    ]
    expect(readItems(items)).toEqual([
      { price: "price_1", quantity: 1, bounds: undefined },
      { price: "price_2", quantity: 1, bounds: { minimum: 1, maximum: 10 } }
    ])
  })

  it("is not sent without a price, or with what is no number", () => {
    expect(readItems([{ ...emptyItem(0), quantity: "x", isAdjustable: true, maximum: "" }])).toEqual([
      "line_items.0.adjustable_quantity.maximum",
      "line_items.0.price",
      "line_items.0.quantity"
    ])
  })
})

describe("questions to payers", () => {
  const readQuestions = (questions: ReadonlyArray<QuestionDraft>) => {
    const reader = new Reader()
    return outcome(reader.done(questionsIn(reader, questions)))
  }

  it("have a key of letters and digits, from the label if none is given", () => {
    expect(keyOf("Grão ou moído?")).toBe("graooumoido")
    expect(readQuestions([{ ...emptyQuestion(0), label: "Grind" }])).toEqual([
      { key: "grind", label: "Grind", type: "text" }
    ])
  })

  it("offer each line of a list under a value of its own", () => {
    const asked = readQuestions([
      { ...emptyQuestion(0), label: "Grind", type: "dropdown", options: "Fine\n\nfine!\n★" }
    ])
    expect(asked).toMatchObject([
      {
        options: [
          { label: "Fine", value: "fine" },
          { label: "fine!", value: "fine2" },
          { label: "★", value: "3" }
        ]
      }
    ])
  })

  it("are not sent without words, a key, or something to choose", () => {
    expect(
      readQuestions([
        emptyQuestion(0),
        { ...emptyQuestion(1), label: "★" },
        { ...emptyQuestion(2), label: "Grind", type: "dropdown" }
      ])
    ).toEqual(["collect.customFields.0.label", "collect.customFields.1.key", "collect.customFields.2.options"])
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
  const created = (fields: Partial<CheckoutPageDraft>) => outcome(newPage({ ...emptyCheckoutPage, ...fields }))
  const changes = (fields: Partial<CheckoutPageDraft>) => outcome(pageChanges(page, { ...before, ...fields }))

  it("has only what was filled in, with a title and items", () => {
    const items = [{ ...emptyItem(0), price: "price_1" }]
    expect(created({ title: " Coffee ", items })).toEqual({
      title: "Coffee",
      items: [{ price: "price_1", quantity: 1 }],
      collect: { billingAddress: false, phoneNumber: false, customFields: [] },
      allowPromotionCodes: false
    })
    expect(created({})).toEqual(["items.0.price"])
  })

  it("sends only what was changed, and removes what was emptied", () => {
    expect(changes({})).toEqual({})
    expect(changes({ title: "Tea", text: " ", images: [], thanks: "" })).toEqual({
      title: "Tea",
      text: "",
      imageUrl: "",
      imageAlt: "",
      successText: ""
    })
    expect(changes({ items: before.items.map((item) => ({ ...item, maximum: "9" })) })).toEqual({
      items: [{ price: "price_1", quantity: 2, adjustableQuantity: { minimum: 1, maximum: 9 } }]
    })
    expect(changes({ items: [emptyItem(0)] })).toEqual(["items.0.price"])
  })

  it("keeps the values of answers whose words stay, and gives none of them to another answer", () => {
    const optionsAfter = (options: string) =>
      changes({ questions: before.questions.map((question) => ({ ...question, options })) })
    const withOptions = (...options: ReadonlyArray<object>) => ({ collect: { customFields: [{ options }] } })
    expect(optionsAfter("g1\nCoarse\nWhole")).toMatchObject(
      withOptions({ label: "g1", value: "g1" }, { label: "Coarse", value: "g2" }, { label: "Whole", value: "whole" })
    )
    expect(optionsAfter("Fine\ng1")).toMatchObject(
      withOptions({ label: "Fine", value: "g1" }, { label: "g1", value: "g12" })
    )
  })
})
