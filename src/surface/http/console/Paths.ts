export const consolePath = "/console" as const

export const isConsolePath = (path: string): boolean => path === consolePath || path.startsWith(`${consolePath}/`)
