import { useEffect, useState } from "preact/hooks"

const tokenOf = (): string => location.hash.slice(1)

/** The token after the `#` of a mailed link. Another link opened in the same tab changes only the hash. */
export const useLinkToken = (): string => {
  const [token, setToken] = useState(tokenOf)
  useEffect(() => {
    const onChange = () => setToken(tokenOf())
    addEventListener("hashchange", onChange)
    return () => removeEventListener("hashchange", onChange)
  }, [])
  return token
}

/** Removes the token from the address, so that neither a reload nor the history exposes it. */
export const forgetToken = (): void => history.replaceState(history.state, "", location.pathname)
