/** A command and how it is called: shown by `--help`, and the list of all commands that there are. */
export interface Example {
  /** Such as `keys create`. */
  readonly command: string
  /** What follows it. */
  readonly line: string
}

/** Stands for an organization's id in examples. */
export const exampleOrganization = "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40"
