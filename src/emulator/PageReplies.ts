import type { HttpReply } from "./Http.ts"
import { messagePage } from "./PageHtml.ts"

/** Scripts and foreign content are refused; where a form may lead is left open, since a paid one leads to the shop. */
export const htmlReply = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): HttpReply => ({
  status,
  headers: {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    ...headers
  },
  body
})

/** A page that only says something. */
export const messageReply = (status: number, title: string, message: string): HttpReply =>
  htmlReply(status, messagePage(title, message))

/** On to another page, which the body names for those who do not follow. */
export const redirect = (location: string, title: string, message: string): HttpReply =>
  htmlReply(303, messagePage(title, message), { location: new URL(location).href })
