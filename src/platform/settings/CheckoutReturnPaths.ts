/**
 * The pages that payers return to with `MODE=local`, if the operator has set none. These pages confirm nothing: the
 * events do (contract 1.4).
 */
export const checkoutReturnPaths = { success: "/checkout/success", cancel: "/checkout/canceled" } as const
