const paths = {
  overview: "M3 13h4l3-8 4 14 3-6h4",
  payments: "M3 7h18v11H3zM3 11h18M7 15h3",
  catalog: "M4 4h7l9 9-7 7-9-9zM8 8h.01",
  promotion: "M6 18 18 6M7.5 9a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM16.5 18a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  destinations: "M12 3v18M12 12l7-5M12 12l-7-5M19 7v10l-7 4-7-4V7l7-4z",
  deliveries: "M4 12h12M11 6l6 6-6 6M20 5v14",
  events: "M5 5h14M5 12h14M5 19h9",
  keys: "M14.5 9.5a4.5 4.5 0 1 0-4 4.5L12 15.5h2v2h2v2h4v-4l-5.6-5.6zM8.5 8.5h.01",
  people:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6M18 14.5a6.5 6.5 0 0 1 3.5 5.5",
  audit: "M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h5",
  account: "M3 10l9-6 9 6M5 10v8M10 10v8M14 10v8M19 10v8M3 20h18",
  start: "M4 12l5 5L20 6",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 13l4 4L19 7",
  chevron: "M8 10l4 4 4-4",
  back: "M14 6l-6 6 6 6",
  more: "M10 6l6 6-6 6",
  warning: "M12 4 2.5 20h19zM12 10v4M12 17h.01",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 8h.01",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M18.4 5.6 17 7M7 17l-1.4 1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  system: "M3 5h18v11H3zM9 20h6M12 16v4",
  out: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5a7.5 7.5 0 0 1 15 0"
} as const

export type IconName = keyof typeof paths

/** A decorative icon; the adjacent text or the button's label carries the meaning. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false">
    <path
      d={paths[name]}
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
      stroke-linejoin="round"
    />
  </svg>
)
