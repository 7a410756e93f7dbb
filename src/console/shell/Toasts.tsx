import { Icon } from "../components/Icon.tsx"
import { dismissToast, toasts } from "../state/Toasts.ts"

/** The current toasts. The live region is always present, since screen readers announce only what is added to it. */
export const Toasts = () => (
  <section class="toasts" aria-label="Messages" aria-live="polite">
    {toasts.value.map(({ id, message, tone }) => (
      <div key={id} class={`toast toast-${tone}`}>
        <Icon name={tone === "ok" ? "check" : "warning"} />
        <span>{message}</span>
        <button type="button" class="icon-button" aria-label="Close this message" onClick={() => dismissToast(id)}>
          <Icon name="close" />
        </button>
      </div>
    ))}
  </section>
)
