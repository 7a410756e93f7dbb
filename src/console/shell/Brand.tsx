export const Brand = () => (
  <span class="brand">
    <svg class="brand-mark" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M8 13h11M8 19h6" />
      <circle cx="22.5" cy="19" r="2.5" />
    </svg>
    <span>connected-payments</span>
  </span>
)
