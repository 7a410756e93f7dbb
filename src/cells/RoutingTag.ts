import type { OrganizationId } from "../kit/Ids.ts"

/**
 * Routing tags. With a directory, tokens and keys begin with what a router needs to find their cell: the organization's
 * id, or the cell's name for a person without one. A tag decides nothing else: the cell it leads to looks the rest up.
 */

const uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
const cell = "[a-z][a-z0-9-]{0,31}"

const uuidForm = new RegExp(`^${uuid}$`)
const taggedToken = new RegExp(`^(?:(${uuid}|${cell})\\.)?([A-Za-z0-9_-]{43})$`)
const taggedKey = new RegExp(`^[a-z]+_[a-z]+_(${uuid})\\.[A-Za-z0-9_-]{43}$`)

/** Where a tag leads. */
export type RoutingTag =
  | { readonly kind: "organization"; readonly id: OrganizationId }
  | { readonly kind: "cell"; readonly name: string }

/** A text with its tag in front. */
export const withTag = (tag: string | null, text: string): string => (tag === null ? text : `${tag}.${text}`)

/** The secret part of a session's or one-time token, tagged or not; undefined if it has not the form of one. */
export const secretOf = (token: string): string | undefined => taggedToken.exec(token)?.[2]

const read = (tag: string | undefined): RoutingTag | undefined =>
  tag === undefined
    ? undefined
    : uuidForm.test(tag)
      ? // The form has just been checked
        { kind: "organization", id: tag as OrganizationId }
      : { kind: "cell", name: tag }

/** The tag of a session's or one-time token; undefined if it has none. */
export const tagOfToken = (token: string): RoutingTag | undefined => read(taggedToken.exec(token)?.[1])

/** The tag of an API key; undefined if it has none. */
export const tagOfKey = (key: string): RoutingTag | undefined => read(taggedKey.exec(key)?.[1])
