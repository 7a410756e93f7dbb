/** How many deliveries the detail of an event shows. */
export const shownDeliveries = 100
