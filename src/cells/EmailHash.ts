import { createHash } from "node:crypto"

/**
 * The key of a person in the directory: the SHA-256 of their address in lower case, as cells store it.
 *
 * @param email in any case
 */
export const hashEmail = (email: string): Buffer => createHash("sha256").update(email.toLowerCase()).digest()
