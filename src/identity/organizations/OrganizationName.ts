import { Schema } from "effect"
import { PrintableText } from "../../platform/bounds/Text.ts"
import { described } from "../../platform/kit/Request.ts"

/**
 * Names of organizations. They appear in mails to people who may not know the organization, so a name must not be
 * something that mail programs turn into a link, nor hide characters. A bare domain is accepted, since companies have
 * such names (Amazon.com Inc.); `unlinked` keeps mails from showing it as a link. No server code.
 */

export const maxOrganizationName = 200

/** Characters that are invisible or change how others look, except the joiners that some scripts and emoji need. */
const unseen = /(?![\u200c\u200d])[\p{Cf}\p{Zl}\p{Zp}]/u

/** Text that mail programs turn into links: a scheme, a web host, a host with a port, path or query, a mail address. */
const links: ReadonlyArray<RegExp> = [
  /:\/\//,
  /(?<![\p{L}\p{N}])(?:https?|s?ftps?|mailto|tel|sms|javascript):\S/u,
  /(?<![\p{L}\p{N}])www\d{0,3}\./u,
  /[\p{L}\p{N}]\.\p{L}[\p{L}\p{N}-]{1,62}\.?(?::\d|[/?#])/u,
  /\d{1,3}(?:\.\d{1,3}){3}(?::\d|[/?#])/,
  /[^\s@]@[^\s@]{1,253}\.[^\s@.]{2}/
]

/** One form each of letters, full stops, colons and slashes, and no joiners, as a link would be read. */
const plain = (name: string): string =>
  name
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll("。", ".")
    .replaceAll("∶", ":")
    .replaceAll(/[⁄∕⧸]/g, "/")

const isName = (name: string): boolean => {
  const read = plain(name)
  return !unseen.test(name) && !links.some((link) => link.test(read))
}

/** An organization's name: 1 to 200 characters once trimmed, without links and invisible characters. */
export const OrganizationName = PrintableText(maxOrganizationName).pipe(
  Schema.filter(isName, {
    message: () => "no link or mail address, and no invisible characters",
    jsonSchema: {}
  })
)

export const OrganizationNameShown = described(
  Schema.String,
  "The organization's name, which members and invited people see"
)

export const organizationNameRule =
  "No link (`https://…`, `www.…`, a host with a path or port), no mail address, and no invisible characters: the name appears in mails to people who are invited"

/**
 * Keeps mail programs from turning a text into a link, by a word joiner after each full stop, colon, slash and at sign
 * inside it. It looks the same.
 */
export const unlinked = (text: string): string => text.replaceAll(/(?<=\S)[.:/@。](?=\S)/gu, "$&\u2060")
