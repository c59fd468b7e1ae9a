/** The bits of a number after integer operations, which may be a number again. */
export interface RawWord {
  /** The number of which they have been made. */
  readonly of: number;
  /** Whether the significand's bits are as they were. */
  readonly isKept: boolean;
  /** Whether the number's sign is without influence on them; else theirs changes with it. */
  readonly isSignFixed: boolean;
  /** The instruction that made them, and its place. */
  readonly name: string;
  readonly site: string;
}
