/** How many deliveries the detail of an event shows, and of how many replays. */
export const shownDeliveries = 100
