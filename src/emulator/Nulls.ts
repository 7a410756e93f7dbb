export type WordsOf<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | WordsOf<Rest> : Text

/** The fields of a provider's object that the emulator never fills: all null. Names are separated by spaces. */
export function nulls<const Names extends string>(names: Names): { readonly [Name in WordsOf<Names>]: null }
export function nulls(names: string): Readonly<Record<string, null>> {
  return Object.fromEntries(names.split(" ").map((name) => [name, null]))
}
