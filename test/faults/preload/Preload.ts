/** Has a process of the service load one of the modules beside this one before its own. */
export const preloading = (module: "NameServer" | "Timeouts" | "ShiftedClock"): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import tsx --import ${new URL(`./${module}.ts`, import.meta.url).href}`
})
