import { signal } from "@preact/signals"

interface ToastShown {
  readonly id: number
  readonly message: string
  readonly tone: "ok" | "problem"
}

export const toasts = signal<ReadonlyArray<ToastShown>>([])

let lastId = 0

/** How long a message is shown: long enough to read it twice. Problems stay until closed. */
const shownMillis = 6000

export const dismissToast = (id: number): void => {
  toasts.value = toasts.value.filter((shown) => shown.id !== id)
}

/** Shows a message, which screen readers announce. */
export const toast = (message: string, tone: "ok" | "problem" = "ok"): void => {
  lastId += 1
  const id = lastId
  toasts.value = [...toasts.value.slice(-3), { id, message, tone }]
  if (tone === "ok") setTimeout(() => dismissToast(id), shownMillis)
}
