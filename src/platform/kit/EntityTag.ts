/**
 * Whether a client already has the version with this tag (`If-None-Match`: a list of tags, including weak ones, or
 * `*`).
 */
export const hasEntityTag = (ifNoneMatch: string | undefined, tag: string): boolean =>
  (ifNoneMatch ?? "").split(",").some((part) => ["*", tag, `W/${tag}`].includes(part.trim()))
