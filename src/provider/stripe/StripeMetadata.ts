/** A change of metadata in Stripe's form: an empty string removes the key. */
export const metadataParams = (
  changes: Readonly<Record<string, string | null>> | undefined
): { readonly metadata?: Record<string, string> } =>
  changes === undefined
    ? {}
    : { metadata: Object.fromEntries(Object.entries(changes).map(([key, value]) => [key, value ?? ""])) }
