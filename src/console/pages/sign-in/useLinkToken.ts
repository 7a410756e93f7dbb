import { useEffect, useState } from "preact/hooks"

const tokenOf = (): string => location.hash.slice(1)

/** The token that follows the `#` of a mailed link; another link opened in the same tab changes only that. */
export const useLinkToken = (): string => {
  const [token, setToken] = useState(tokenOf)
  useEffect(() => {
    const onChange = () => setToken(tokenOf())
    addEventListener("hashchange", onChange)
    return () => removeEventListener("hashchange", onChange)
  }, [])
  return token
}

/** Takes the token out of the address, so that neither a reload nor the history shows it. */
export const forgetToken = (): void => history.replaceState(history.state, "", location.pathname)
