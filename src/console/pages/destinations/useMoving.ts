import { useCallback, useState } from "preact/hooks"

const movingMillis = 2000
const restingMillis = 30_000

/** How often to read a list: often while something in it is running, which `note` is told of each time it was read. */
export const useMoving = () => {
  const [moving, setMoving] = useState(false)
  const note = useCallback((running: boolean) => setMoving(running), [])
  return { note, pollMillis: moving ? movingMillis : restingMillis }
}
