/** What a fault changes of the steps around Mamba-2's recurrence. */
export interface Mamba2Change {
  /** The number from which the softplus is its argument. */
  readonly threshold?: number;
  /** What is written of x and Δ. */
  readonly value?: (x: number, step: number) => number;
  /** What outputs are multiplied by, of z. */
  readonly gate?: (z: number) => number;
  /** Whether D x is added behind the gate. */
  readonly addsBehindGate?: boolean;
  /** Whether dt_bias is added behind the softplus. */
  readonly addsBiasBehind?: boolean;
  /** Whether dx lacks D dy. */
  readonly skipsGradient?: boolean;
  /** Whether ddt lacks the slope of the softplus and of the limits. */
  readonly lacksSlope?: boolean;
  /** Whether ddt takes A from the next head. */
  readonly takesNextRate?: boolean;
}
