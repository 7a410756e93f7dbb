/** Whether a client has the version with this tag already (`If-None-Match`: a list of tags, weak ones too, or `*`). */
export const hasEntityTag = (ifNoneMatch: string | undefined, tag: string): boolean =>
  (ifNoneMatch ?? "").split(",").some((part) => ["*", tag, `W/${tag}`].includes(part.trim()))
