/** A change of metadata as Stripe takes it: an empty text removes its key. */
export const metadataParams = (
  changes: Readonly<Record<string, string | null>> | undefined
): { readonly metadata?: Record<string, string> } =>
  changes === undefined
    ? {}
    : { metadata: Object.fromEntries(Object.entries(changes).map(([key, value]) => [key, value ?? ""])) }
