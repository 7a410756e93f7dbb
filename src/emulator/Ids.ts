import { randomBytes } from "node:crypto"
import type { WordsOf } from "./Records.ts"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** Largest multiple of 62 in a byte: bytes from here on are drawn again, so that all characters are equally likely. */
const evenRange = 248

const randomText = (length: number): string => {
  let text = ""
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) {
      if (byte < evenRange) text += alphabet.charAt(byte % alphabet.length)
    }
  }
  return text
}

/** The number of characters after a prefix, the same as in the provider's ids: 24, but for these. */
const lengths = { ac_: 32, acct_: 16, cs_test_: 58, cus_: 14, prod_: 14, req_: 14, si_: 14 } as const

type UsualPrefix =
  WordsOf<"ba_ ch_ di_ du_ ed_test_ evt_ evt_test_ ii_ il_ in_ inpay_ li_ pi_ plink_ pm_ po_ price_ promo_ py_ re_ sub_ txn_">

const lengthAfter: Readonly<Record<string, number>> = lengths

export const newId = (prefix: keyof typeof lengths | UsualPrefix): string =>
  prefix + randomText(lengthAfter[prefix] ?? 24)

/** A new random code of eight capital letters or digits, like the provider's for coupons and promotion codes. */
export const newCode = (): string => randomText(8).toUpperCase()

/** A new random part of a URL, known only to its recipient. */
export const newUrlToken = (): string => randomText(24)

export const newClientSecret = (paymentIntent: string): string => `${paymentIntent}_secret_${randomText(25)}`

export const isAccountId = (text: string): boolean => /^acct_[A-Za-z0-9]{16}$/.test(text)

/** The id of the platform's OAuth application, through which accounts grant it access. */
export const platformApplicationId = "ca_EmulatorPlatform"

/** The platform's own account: the same under every key and after every restart. */
export const platformAccountId = "acct_EmulatorPlatform"

export const anotherPlatformAccountId = "acct_AnotherPlatform"
