import type { HttpReply } from "../Http.ts"
import { messagePage } from "./PageLayout.ts"

/** Form targets are not restricted, since after a payment a form redirects to the shop. */
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

export const messageReply = (status: number, title: string, message: string): HttpReply =>
  htmlReply(status, messagePage(title, message))

/** A redirect; its body links to the other page, for clients that do not follow it. */
export const redirect = (location: string, title: string, message: string): HttpReply =>
  htmlReply(303, messagePage(title, message), { location: new URL(location).href })
