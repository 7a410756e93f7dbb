import { describe, expect, it } from "@effect/vitest"
import { isKeptByBrowsers } from "../../src/platform/kit/UrlServer.ts"

describe("the session's cookie", () => {
  it.each([
    "https://payments.example",
    "https://payments.example:8443/below",
    "http://localhost:3000",
    "http://payments.shop.localhost:3000",
    "http://127.0.0.1:3000",
    "http://[::1]:3000"
  ])("is kept by browsers at %s", (url) => {
    expect(isKeptByBrowsers(url)).toBe(true)
  })

  it.each(["http://shop.test:22045", "http://192.168.0.7", "http://localhost.example", "http://127.0.0.1.example"])(
    "is not kept at %s",
    (url) => {
      expect(isKeptByBrowsers(url)).toBe(false)
    }
  )
})
