import { randomBytes } from "node:crypto"

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

/** The number of characters after each prefix, the same as in the provider's ids. */
const lengths = {
  ac_: 32,
  acct_: 16,
  ba_: 24,
  ch_: 24,
  cs_test_: 58,
  cus_: 14,
  di_: 24,
  du_: 24,
  ed_test_: 24,
  evt_: 24,
  evt_test_: 24,
  ii_: 24,
  il_: 24,
  in_: 24,
  inpay_: 24,
  li_: 24,
  pi_: 24,
  plink_: 24,
  pm_: 24,
  po_: 24,
  price_: 24,
  prod_: 14,
  promo_: 24,
  py_: 24,
  re_: 24,
  req_: 14,
  si_: 14,
  sub_: 24,
  txn_: 24
} as const

export type IdPrefix = keyof typeof lengths

export const newId = (prefix: IdPrefix): string => prefix + randomText(lengths[prefix])

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
