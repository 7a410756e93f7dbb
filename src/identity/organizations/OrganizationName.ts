import { Schema } from "effect"
import { PrintableText } from "../../bounds/Text.ts"

/**
 * Names of organizations. They stand in mails to people who never heard of the organization, so a name must not be what a
 * mail program makes a link of, nor look like another name than it is. A bare domain is a name that companies have
 * (Amazon.com Inc.) and is taken; `unlinked` has mails show it without a link. Holds no server code.
 */

/** Characters of a name at most. */
export const maxOrganizationName = 200

/** Not seen, or changing how what is around them is seen, but for the joiners that some scripts and emoji are written with. */
const unseen = /(?![\u200c\u200d])[\p{Cf}\p{Zl}\p{Zp}]/u

/** A scheme that mail programs follow, a web host, a host with a port, path or query, a mail address. */
const links: ReadonlyArray<RegExp> = [
  /:\/\//,
  /(?<![\p{L}\p{N}])(?:https?|s?ftps?|mailto|tel|sms|javascript):\S/u,
  /(?<![\p{L}\p{N}])www\d{0,3}\./u,
  /[\p{L}\p{N}]\.\p{L}[\p{L}\p{N}-]{1,62}\.?(?::\d|[/?#])/u,
  /\d{1,3}(?:\.\d{1,3}){3}(?::\d|[/?#])/,
  /[^\s@]@[^\s@]{1,253}\.[^\s@.]{2}/
]

/** As a link would be read: the many forms of letters, full stops, colons and slashes as one each, joiners gone. */
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

/** An organization's name: 1 to 200 characters once the blanks around it are gone, no link and nothing unseen in it. */
export const OrganizationName = PrintableText(maxOrganizationName).pipe(
  Schema.filter(isName, {
    message: () => "no link or mail address, and no characters that are not seen",
    jsonSchema: {}
  })
)

/** What a name may not be, in words, for documents. */
export const organizationNameRule =
  "No link (`https://…`, `www.…`, a host with a path or port), no mail address, and no invisible characters: the name stands in mails to people who are invited"

/** Has mail programs make no link of a text: they need its stops, colons, slashes and at signs unbroken. It looks the same. */
export const unlinked = (text: string): string => text.replaceAll(/(?<=\S)[.:/@。](?=\S)/gu, "$&\u2060")
