export const consolePath = "/console" as const

/** Whether a path is the console's or below it. */
export const isConsolePath = (path: string): boolean => path === consolePath || path.startsWith(`${consolePath}/`)
