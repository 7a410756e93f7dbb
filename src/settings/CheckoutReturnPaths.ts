/**
 * Where a payer's browser returns to if the operator has set no pages of their own, in `MODE=local`. These pages confirm
 * nothing: the events do (contract 1.4).
 */
export const checkoutReturnPaths = { success: "/checkout/success", cancel: "/checkout/canceled" } as const
