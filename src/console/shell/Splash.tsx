import { Brand } from "./Brand.tsx"

/** Shown until it is known who is signed in. */
export const Splash = () => (
  <main class="plain" id="main">
    <div class="splash" role="status">
      <Brand />
      <span class="for-readers">Loading…</span>
    </div>
  </main>
)
