import { call } from "../api/Call.ts"
import { useQuery } from "../state/Query.ts"
import { useSession } from "../state/Session.ts"

export const useMembers = () => useQuery("organization/members", (signal) => call("members", "list", {}, { signal }))

export const useKeys = (options: { readonly pollMillis?: number } = {}) => {
  const { organization } = useSession()
  const key = organization.role === "viewer" ? null : "keys"
  return useQuery(key, (signal) => call("apiKeys", "list", {}, { signal }), options)
}

interface AuthorShown {
  readonly kind: string
  readonly id: string
}

/** Names authors: members by email address, keys of this workspace by name, if the reader may list them. */
export const useAuthorNames = (): ((author: AuthorShown | null) => string) => {
  const { person } = useSession()
  const members = useMembers()
  const keys = useKeys()
  return (author) => {
    if (author === null) return "unknown"
    if (author.kind === "operator") return "Operator"
    if (author.kind === "provider") return "Payment provider"
    if (author.kind === "api_key") {
      const name = keys.data?.data.find(({ id }) => id === author.id)?.name
      return name === undefined ? "API key" : `Key ${name}`
    }
    if (author.id === person.id) return "You"
    const known = members.data?.data.find(({ personId }) => personId === author.id)?.email
    return known ?? (author.kind === "person" ? (members.data === undefined ? "Member" : "Former member") : author.kind)
  }
}
