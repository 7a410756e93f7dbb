/** The currencies that the provider charges in (https://docs.stripe.com/currencies). */
const codes =
  "aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb tjs tnd top try ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd xof xpf yer zar zmw"

const names = new Intl.DisplayNames("en", { type: "currency", fallback: "none" })

const choiceOf = (code: string) => {
  const name = names.of(code.toUpperCase())
  return { value: code, label: name === undefined ? code.toUpperCase() : `${code.toUpperCase()} – ${name}` }
}

export const currencyChoices = (used: ReadonlyArray<string>): ReadonlyArray<{ value: string; label: string }> =>
  [...new Set([...used, ...codes.split(" ")])].map(choiceOf)

export const fallbackCurrency = "usd"
